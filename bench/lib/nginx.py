# SPDX-License-Identifier: MIT
"""nginx, by default with one worker: for files, or in front of FastCGI responders or a server of
HTTP.
"""

import os
import pwd

from .fastcgi import Responders, library_version
from .servers import Server, connects, find_program, version

# Of nginx: what its documentation recommends for speed, and no log.
NGINX = """\
{user}
daemon off;
worker_processes {workers};
pid {dir}/nginx.pid;
error_log {dir}/error.log warn;
events {{
    worker_connections 4096;
}}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_timeout 3600s;
    keepalive_requests 1000000000;
    open_file_cache max=10000 inactive=600s;
    open_file_cache_valid 1s;
    client_body_temp_path {dir}/body;
    fastcgi_temp_path {dir}/fastcgi;
    proxy_temp_path {dir}/proxy;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    {upstream}
    server {{
        listen {listen}:{port}{ssl} backlog=1024;
        root {root};
        {tls}
        {location}
    }}
}}
"""

# The variables are those of RFC 3875, as Debian's fastcgi_params has them and
# the other servers send them.
FASTCGI_VARIABLES = """\
fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param CONTENT_TYPE $content_type;
            fastcgi_param CONTENT_LENGTH $content_length;
            fastcgi_param SCRIPT_NAME $fastcgi_script_name;
            fastcgi_param REQUEST_URI $request_uri;
            fastcgi_param DOCUMENT_URI $document_uri;
            fastcgi_param DOCUMENT_ROOT $document_root;
            fastcgi_param SERVER_PROTOCOL $server_protocol;
            fastcgi_param REQUEST_SCHEME $scheme;
            fastcgi_param GATEWAY_INTERFACE CGI/1.1;
            fastcgi_param SERVER_SOFTWARE nginx/$nginx_version;
            fastcgi_param REMOTE_ADDR $remote_addr;
            fastcgi_param REMOTE_PORT $remote_port;
            fastcgi_param REMOTE_USER $remote_user;
            fastcgi_param SERVER_ADDR $server_addr;
            fastcgi_param SERVER_PORT $server_port;
            fastcgi_param SERVER_NAME $server_name;
            fastcgi_param REDIRECT_STATUS 200;"""
# A whole body has to fit into the buffers: with no file to spill to, nginx would
# otherwise wait for its client and keep the responder waiting.  One process answers
# on one kept connection only, and nginx opens as many as it has requests: with
# fewer processes some requests would wait forever.
NGINX_FASTCGI = """\
location = /generate {{
            fastcgi_pass responders;
            {variables}
            fastcgi_buffering on;
            fastcgi_buffer_size {buffer}k;
            fastcgi_buffers {buffers} {buffer}k;
            fastcgi_busy_buffers_size {busy}k;
            fastcgi_max_temp_file_size 0;
            fastcgi_keep_conn on;
        }}"""
UPSTREAM = """\
upstream responders {{
        server unix:{socket};
        keepalive {processes};
    }}"""
FCGI_BUFFER = 32  # KiB
# What the server behind is told of the client is what SWEET tells it.
NGINX_PROXY = """\
location / {{
            proxy_pass http://behind;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header X-Forwarded-Host $host;
            proxy_buffer_size {buffer}k;
            proxy_buffers {buffers} {buffer}k;
            proxy_busy_buffers_size {busy}k;
            proxy_max_temp_file_size 0;
        }}"""
BEHIND = """\
upstream behind {{
        server 127.0.0.1:{port};
        keepalive {connections};
        keepalive_requests 1000000000;
        keepalive_timeout 3600s;
    }}"""
KEPT_CONNECTIONS = 1024
# The buffers of a connection are as large as a record, by default; frames of HTTP/2 are not.
TLS = """\
ssl_certificate {pem};
        ssl_certificate_key {pem};
        ssl_protocols TLSv1.3;
        http2_chunk_size 16k;"""
KERNEL_TLS = """
        ssl_conf_command Options KTLS;"""


def arguments(server):
    return [server.program, "-p", server.directory, "-c", server.conf,
            "-e", os.path.join(server.directory, "error.log")]


def conf_text(directory, port, root, location="", upstream="", workers=1, listen="127.0.0.1",
              as_root=True, tls=None):
    """Returns a configuration; as_root: it is started as root, and remains it."""
    user = f"user {pwd.getpwuid(0).pw_name};" if as_root else ""
    return NGINX.format(user=user, dir=directory, port=port, root=root, location=location,
                        upstream=upstream, workers=workers, listen=listen,
                        ssl=" ssl http2" if tls else "", tls=tls_lines(tls) if tls else "")


def tls_lines(tls):
    # Without the kernel's part, each connection would only ask for it in vain.
    return TLS.format(pem=tls.pem) + (KERNEL_TLS if tls.by_kernel else "")


def fastcgi_location(buffers):
    return NGINX_FASTCGI.format(variables=FASTCGI_VARIABLES, buffers=buffers, buffer=FCGI_BUFFER,
                                busy=2 * FCGI_BUFFER)


def buffers_for(size):
    """Returns the number of buffers that a body of this size needs."""
    return max(8, size // (FCGI_BUFFER << 10) + 2)


def write_conf(server, root, **more):
    server.program = find_program("nginx")
    server.version = version([server.program, "-v"])
    server.conf = os.path.join(server.directory, "nginx.conf")
    with open(server.conf, "w") as file:
        file.write(conf_text(server.directory, server.port, root, as_root=os.geteuid() == 0,
                             tls=server.tls, **more))


class Nginx(Server):
    """For files; listen: the address; lines: more of its server."""

    def __init__(self, context, root, name="nginx", workers=1, listen="127.0.0.1", tls=None,
                 lines=""):
        super().__init__(name, context.directory, context.server_cpu)
        self.tls = tls
        write_conf(self, root, workers=workers, listen=listen, location=lines)

    def begin(self):
        self.launch(arguments(self), "nginx", lambda log: connects(self.port))


class NginxFastCgi(Server):
    """In front of responders: a kept connection to each, buffers for bodies of max_size."""

    def __init__(self, context, root, max_size, processes, tls=None):
        super().__init__("nginx-fastcgi", context.directory, context.server_cpu)
        self.tls = tls
        self.responders = Responders(context, self, processes)
        buffers = buffers_for(max_size)
        write_conf(self, root, location=fastcgi_location(buffers),
                   upstream=UPSTREAM.format(socket=self.responders.socket, processes=processes))
        self.detail = (f"{processes} FastCGI processes on kept connections, {buffers} buffers"
                       f" of {FCGI_BUFFER} KiB; libfcgi {library_version()}")

    def begin(self):
        self.responders.launch()
        self.launch(arguments(self), "nginx", lambda log: connects(self.port))


class NginxProxy(Server):
    """In front of a server of HTTP: kept connections, buffers for bodies of max_size."""

    def __init__(self, context, root, behind, max_size):
        super().__init__("nginx-proxy", context.directory, context.server_cpu)
        self.root, self.behind, self.buffers = root, behind, buffers_for(max_size)
        self.detail = f"{self.buffers} buffers of {FCGI_BUFFER} KiB"
        self.configure()

    def configure(self):
        location = NGINX_PROXY.format(buffers=self.buffers, buffer=FCGI_BUFFER,
                                      busy=2 * FCGI_BUFFER)
        write_conf(self, self.root, location=location,
                   upstream=BEHIND.format(port=self.behind.port, connections=KEPT_CONNECTIONS))

    def begin(self):
        self.configure()
        self.launch(arguments(self), "nginx", lambda log: connects(self.port))
