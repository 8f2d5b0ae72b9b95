# SPDX-License-Identifier: MIT
"""Third-party programs, and headers of libraries, that some tests need: their paths, and the Debian
packages that contain them."""

import glob
import os
import shutil

# The names in the mark "needs", and the Debian package that contains each.
PACKAGES = {
    "ab": "apache2-utils", "brotli": "brotli", "certbot": "certbot", "chromium": "chromium",
    "dehydrated": "dehydrated", "ethtool": "ethtool", "fcgiapp.h": "libfcgi-dev", "gnuplot": "gnuplot-nox",
    "go": "golang-go", "gzip": "gzip", "h2load": "nghttp2-client", "haproxy": "haproxy",
    "htpasswd": "apache2-utils", "httperf": "httperf", "ip": "iproute2",
    "java": "default-jdk-headless", "lego": "lego", "litmus": "litmus",
    "nghttp": "nghttp2-client", "nginx": "nginx-light", "node": "nodejs", "openssl": "openssl",
    "pebble": "pebble",
    "php-fpm": "php-fpm", "spawn-fcgi": "spawn-fcgi", "tcpdump": "tcpdump", "zstd": "zstd",
}
# Debian's own first, because its packages are already compiled.
PLACES = {"go": ["/usr/lib/go/bin/go"]}
HEADERS = ("/usr/local/include", "/usr/include")
VERSIONED = {"php-fpm"}  # Debian's names have the version at their end
# Of programs that Debian does not have: how to get them, and the variable that names the program.
OTHERS = {"h2spec": "go install github.com/summerwind/h2spec/cmd/h2spec@latest"}
VARIABLES = {"h2spec": "H2SPEC"}


def find(name):
    """Returns the path of what PACKAGES or OTHERS names, or None."""
    if name.endswith(".h"):
        found = (os.path.join(folder, name) for folder in HEADERS)
        return next(filter(os.path.exists, found), None)
    path, places = os.environ.get("PATH", os.defpath), [name]
    # The runner lets the first tier see only what its own packages have.
    if not os.environ.get("NABC_ONLY_PATH"):
        path += ":/usr/sbin"
        places = [*PLACES.get(name, ()), name]
    if name in VARIABLES:
        places.insert(0, os.environ.get(VARIABLES[name], ""))
    if name in VERSIONED:
        for folder in path.split(":"):
            places += sorted(glob.glob(os.path.join(folder, f"{name}[0-9]*")))
    found = (shutil.which(place, path=path) for place in places)
    return next(filter(None, found), None)


def missing(name):
    if name in OTHERS:
        return f"{name} is missing; with Go: {OTHERS[name]}"
    return f"{name} is missing; on Debian: apt-get install {PACKAGES[name]}"
