# SPDX-License-Identifier: MIT
"""Hides installed Debian packages from this process and those that it starts: their files are
absent from overlays over the folders where packages have them, so that no path leads to a program, a
module of Python, a header or a library of theirs.  The mounts are this process's own, and end with
it; nothing on the machine changes.
"""

import os
import tempfile

import suites  # whose search path has the folder of namespace
import namespace
import tier_path

COVERED = ("/usr", "/etc")
CCACHE = "/usr/lib/ccache"  # links to ccache itself, with the names of the compilers that are there
# Debian's own folders: what else is on the machine belongs to no package.
PATH = f"{CCACHE}:/usr/sbin:/usr/bin:/sbin:/bin"


def of_build():
    """The packages without which nothing can be built or tested, and the libraries that the built
    programs may have been linked to: without these they would have to be built again."""
    libraries = {one for package in suites.packages_of(suites.QUICK, suites.MORE)
                 if package.endswith("-dev")
                 for one in tier_path.closure([package], base=()) - {package}}
    return libraries | tier_path.closure(suites.packages_of_build(os.path.dirname(suites.TESTS)))


def removed(packages):
    """Returns what a removal of the packages takes from a machine that has those of the build and of
    the first two tiers: the packages, others of these that need them, and what only they need."""
    known = {*suites.packages_of(suites.QUICK, suites.MORE), *packages}
    stay = {one for one in known if not tier_path.closure([one], base=()) & set(packages)}
    return tier_path.closure(known) - tier_path.closure(stay) - of_build()


def others(packages):
    """Returns what these packages leave over of those of the first two tiers."""
    return tier_path.closure(suites.packages_of(suites.QUICK, suites.MORE)) \
        - tier_path.closure({*packages, *suites.HARNESS}) - of_build()


def listed(hidden):
    """Returns (the paths of hidden packages, those of all others)."""
    ours, theirs = set(), set()
    for entry in os.listdir(tier_path.INFO):
        package, kind = os.path.splitext(entry)
        if kind == ".list":
            with open(os.path.join(tier_path.INFO, entry)) as file:
                (ours if package.split(":")[0] in hidden else theirs).update(file.read().splitlines())
    return ours, theirs


def real(path):
    """/bin is a link to /usr/bin; the last part may be a link of the package's own."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def paths(hidden):
    """Returns the files of hidden packages, and the folders of theirs alone, but nothing in these."""
    ours, theirs = listed(hidden)
    ours = {real(path) for path in ours - theirs if os.path.lexists(path)}
    ours |= {os.path.join(CCACHE, os.path.basename(path)) for path in ours
             if os.path.dirname(path) in tier_path.PLACES}
    return sorted(path for path in ours if os.path.dirname(path) not in ours and os.path.lexists(path))


def mask(upper, path):
    """In an overlay, a device 0:0 of the upper folder hides what has its name in the lower one."""
    whole = os.path.join(upper, path)
    folder = os.path.dirname(whole)
    if not os.path.isdir(folder):
        made = upper
        for part in os.path.relpath(folder, upper).split("/"):
            made = os.path.join(made, part)
            if not os.path.isdir(made):
                os.mkdir(made)
                # The folder of the overlay looks as this one does.
                status = os.stat(os.path.join("/", os.path.relpath(made, upper)))
                os.chown(made, status.st_uid, status.st_gid)
                os.chmod(made, status.st_mode & 0o7777)
    os.mknod(whole, 0o20000, os.makedev(0, 0))


def hide(packages):
    """Hides the installed packages; raises OSError where no mounts are permitted."""
    namespace.call("unshare", namespace.CLONE_NEWNS)
    namespace.mount("none", "/", None, namespace.MS_REC | namespace.MS_PRIVATE)
    scratch = tempfile.mkdtemp()
    try:
        namespace.mount("none", scratch, "tmpfs", 0)
        os.chmod(scratch, 0o755)
        upper = os.path.join(scratch, "upper")
        os.mkdir(upper)
        for path in paths(packages):
            if path.startswith(tuple(f"{top}/" for top in COVERED)):
                mask(upper, path.lstrip("/"))
        for top in filter(os.path.isdir, (upper + top for top in COVERED)):
            work = os.path.join(scratch, os.path.basename(top))
            os.mkdir(work)
            lower = top.removeprefix(upper)
            namespace.mount("none", lower, "overlay", 0,
                            f"lowerdir={lower},upperdir={top},workdir={work}")
        # The overlays keep what they use of it.
        namespace.call("umount2", os.fsencode(scratch), namespace.MNT_DETACH)
    finally:
        os.rmdir(scratch)
    os.environ["PATH"] = PATH
