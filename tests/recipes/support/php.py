# SPDX-License-Identifier: MIT
"""What PHP applications need: php-fpm and MariaDB where Debian has them, the checks that all of them
have in common, and an image to upload."""

import os
import struct
import zlib

import tools

SOCKET = "/run/php/php-fpm.sock"
DATABASE = "/run/mysqld/mysqld.sock"
POOL = f"""[global]
error_log = /proc/self/fd/2
[www]
user = www-data
group = www-data
listen = {SOCKET}
listen.owner = www-data
listen.group = www-data
pm = static
pm.max_children = 4
catch_workers_output = yes
php_admin_value[session.save_path] = /run/php
php_admin_value[date.timezone] = UTC
"""


def start_fpm(recipe, settings=""):
    """settings: more lines of the pool, such as php_admin_value[upload_max_filesize] = 20M."""
    path = recipe.folder / "fpm.conf"
    path.write_text(POOL + settings)
    os.makedirs("/run/php", exist_ok=True)
    os.chmod("/run/php", 0o777)
    return recipe.daemon([tools.find("php-fpm"), "-F", "-O", "-y", path], SOCKET)


def start_mariadb(recipe):
    """An empty server without a network; root needs no password by the socket."""
    recipe.cover("/var/lib/mysql", empty=True)
    os.makedirs("/run/mysqld", exist_ok=True)
    os.chmod("/run/mysqld", 0o777)
    recipe.run("mariadb-install-db", "--no-defaults", "--user=mysql", "--datadir=/var/lib/mysql",
               "--auth-root-authentication-method=socket", "--skip-test-db")
    return recipe.daemon(["/usr/sbin/mariadbd", "--no-defaults", "--user=mysql",
                          "--datadir=/var/lib/mysql", f"--socket={DATABASE}", "--skip-networking",
                          "--innodb-flush-log-at-trx-commit=0",
                          "--pid-file=/run/mysqld/mysqld.pid"], DATABASE)


def sql(recipe, text):
    return recipe.run("mariadb", "--no-defaults", f"--socket={DATABASE}", "-N", "-e", text)


def image(width=64, height=48):
    """Returns a PNG whose pixels all differ."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + b"".join(bytes([x * 255 // width, y * 255 // height, x * y % 256])
                                     for x in range(width)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def refused(visitor, paths):
    """Clients get none of these paths, and no source."""
    for path in paths:
        answer = visitor.get(path, follow=False)
        assert answer.status in (400, 403, 404), f"{path}: {answer}"
        assert b"<?" not in answer.body, f"{path}: {answer}"


def no_sources(visitor, paths):
    """Whatever these paths answer, it is not the source of a script."""
    for path in paths:
        answer = visitor.get(path, follow=False)
        assert b"<?php" not in answer.body, f"{path}: {answer}"
