# SPDX-License-Identifier: MIT
"""Third-party programs that some tests need: their paths, and the Debian packages that contain
them."""

import os
import shutil

# The names in the mark "needs", and the Debian package that contains each.
PACKAGES = {
    "ab": "apache2-utils", "brotli": "brotli", "certbot": "certbot", "chromium": "chromium",
    "dehydrated": "dehydrated", "gnuplot": "gnuplot-nox",
    "go": "golang-go", "gzip": "gzip", "h2load": "nghttp2-client", "haproxy": "haproxy",
    "htpasswd": "apache2-utils", "httperf": "httperf", "lego": "lego",
    "nginx": "nginx-light", "openssl": "openssl", "pebble": "pebble",
    "php-fpm8.2": "php8.2-fpm", "spawn-fcgi": "spawn-fcgi", "tcpdump": "tcpdump", "zstd": "zstd",
}
# Debian's own first, because its packages are already compiled.
PLACES = {"go": ["/usr/lib/go/bin/go"]}


def find(name):
    """Returns the path of a program that PACKAGES names, or None."""
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin"
    found = (shutil.which(place, path=path) for place in (*PLACES.get(name, ()), name))
    return next(filter(None, found), None)


def missing(name):
    return f"{name} is missing; on Debian: apt-get install {PACKAGES[name]}"
