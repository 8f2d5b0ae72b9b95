# SPDX-License-Identifier: MIT
"""h2o with one thread, for files."""

import json
import os

from .servers import Server, connects, find_program, version


def configuration(directory, port, root, listen="127.0.0.1", as_root=True, tls=None):
    """Returns the configuration as JSON, which is also YAML.

    h2o keeps a file open for a turn of its loop, which cannot be configured, and reads files
    instead of using sendfile(). By default it has no log.
    """
    return {
        "num-threads": 1,
        "max-connections": 4096,
        "pid-file": os.path.join(directory, "h2o.pid"),
        "error-log": os.path.join(directory, "error.log"),
        "http1-request-timeout": 3600,
        "listen": {"host": listen, "port": port,
                   **({"ssl": {"certificate-file": tls.pem, "key-file": tls.pem}} if tls else {})},
        "hosts": {"default": {"paths": {"/": {"file.dir": root}}}},
        **({"user": "root"} if as_root else {}),
    }


class H2o(Server):
    """For files."""

    def __init__(self, context, root, tls=None):
        super().__init__("h2o", context.directory, context.server_cpu)
        self.tls = tls
        self.program = find_program("h2o")
        self.version = version([self.program, "--version"])
        self.conf = os.path.join(self.directory, "h2o.conf")
        with open(self.conf, "w") as file:
            json.dump(configuration(self.directory, self.port, root,
                                    as_root=os.geteuid() == 0, tls=tls), file, indent=2)

    def begin(self):
        self.launch([self.program, "-m", "worker", "-c", self.conf], "h2o",
                    lambda log: connects(self.port))
