# SPDX-License-Identifier: MIT
"""A PATH with the programs of some Debian packages and of no others.  The first tier runs the
system tests with the packages that it installs, so that a test that needs another program, and
does not say so, fails on a machine where everything is installed as it does on a bare one.
"""

import functools
import os
import re
import shutil
import subprocess

FORMAT = ("${Package}\t${db:Status-Status}\t${Essential}\t${Priority}\t${Provides}\t"
          "${Pre-Depends}, ${Depends}\n")
INFO = "/var/lib/dpkg/info"
PLACES = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def names(field):
    """The packages of a field such as Depends: a list of alternatives for each."""
    for group in filter(str.strip, field.split(",")):
        yield [re.match(r"\s*([a-z0-9.+-]+)", one)[1] for one in group.split("|")]


@functools.cache
def installed():
    """Returns ({package: [alternatives, ...] that it needs}, {virtual package: one that provides
    it}, packages of each system)."""
    needs, provided, base = {}, {}, set()
    said = subprocess.run(["dpkg-query", "-W", "-f", FORMAT], capture_output=True, text=True).stdout
    for line in said.splitlines():
        package, status, essential, priority, provides, depends = line.split("\t")
        if status != "installed":
            continue
        needs[package] = list(names(depends))
        for name, *_ in names(provides):
            provided.setdefault(name, package)
        if essential == "yes" or priority == "required":
            base.add(package)
    return needs, provided, base


def closure(wanted, base=None):
    """Returns the installed packages among the wanted ones, those that they need, and those that
    each system has, or those of base instead."""
    needs, provided, every = installed()
    found, left = set(), [*(every if base is None else base), *wanted]
    while left:
        package = left.pop()
        package = package if package in needs else provided.get(package)
        if not package or package in found:
            continue
        found.add(package)
        for alternatives in needs[package]:
            left += [one for one in alternatives if one in needs or one in provided][:1]
    return found


def files(packages):
    """Returns the paths of all files of packages that lie in PLACES."""
    found = set()
    for entry in os.listdir(INFO):
        package, kind = os.path.splitext(entry)
        if kind == ".list" and package.split(":")[0] in packages:
            with open(os.path.join(INFO, entry)) as file:
                found.update(path for path in file.read().splitlines()
                             if os.path.dirname(path) in PLACES)
    return found


def alternatives(known):
    """Returns the links to the files that update-alternatives has made, such as awk."""
    known = {os.path.realpath(path) for path in known}
    for place in PLACES:
        for name in os.listdir(place) if os.path.isdir(place) else ():
            path = os.path.join(place, name)
            if os.path.islink(path) and os.readlink(path).startswith("/etc/alternatives/") and \
                    os.path.realpath(path) in known:
                yield path


def make(folder, packages):
    """Makes the folder; returns the PATH.  Returns None if this is no Debian."""
    if not shutil.which("dpkg-query"):
        return None
    found = files(closure(packages))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for path in sorted({*found, *alternatives(found)}):
        if os.access(path, os.X_OK) and not os.path.lexists(os.path.join(folder, os.path.basename(path))):
            os.symlink(path, os.path.join(folder, os.path.basename(path)))
    ccache = "/usr/lib/ccache"
    return f"{ccache}:{folder}" if os.path.isdir(ccache) else folder
