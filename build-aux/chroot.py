# SPDX-License-Identifier: MIT
"""chroot.py - A bare Debian in a chroot: what a fresh machine has, and nothing else.

debootstrap makes it with its minbase variant from the archive that apt on this machine is configured
for, without the archives of security and updates: the oldest packages that a user can have.  It has
processes and mounts of its own, the /sys, /dev and network of the machine, and its own /proc, /dev/pts,
/dev/shm and /run.

NABC_CHROOTS, or /var/cache/nabc-chroots, keeps between runs what debootstrap made (RELEASE), which is
copied for each chroot, and the packages that were downloaded (packages-RELEASE).  Where installing
takes long, it also keeps a chroot with packages (RELEASE-NAME-DIGEST): see Chroot.prepared().
"""

import contextlib
import glob
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

RELEASES = ("bookworm", "trixie")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Mounts, in a namespace that ends with this shell, which stays root: unshare's --kill-child would have
# no effect on a process that has changed its user.
# $1: the chroot, $2: the folder of packages, $3: what ccache keeps, then the words of chroot(8).
ENTER = """
set -e
mount --bind "$1" "$1" # as the root of a machine, it can be mounted anew
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$1/dev/pts"
mount --bind "$1/dev/pts/ptmx" "$1/dev/ptmx"
mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$1/run"
mount --bind "$2" "$1/var/cache/apt/archives"
mount --bind "$3" "$1/root/.cache/ccache"
shift 3
chroot "$@" || exit
"""

# The same for systemd, which becomes the first process: a cgroup and a network of its own.
# $1: the chroot, $2: the folder of packages, $3: the cgroup.
BOOT = """
set -e
echo 0 >"$3/cgroup.procs"
mount --make-rprivate /
mount --bind "$1" "$1"
mount --bind "$2" "$1/var/cache/apt/archives"
mount -t proc proc "$1/proc"
mount -t sysfs sysfs "$1/sys"
mount -t tmpfs -o mode=755 tmpfs "$1/dev"
for device in full null random tty urandom zero; do
	: >"$1/dev/$device"
	mount --bind "/dev/$device" "$1/dev/$device"
done
mkdir "$1/dev/pts" "$1/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$1/dev/pts"
ln -s pts/ptmx "$1/dev/ptmx"
ln -s /proc/self/fd "$1/dev/fd"
for number in 0:stdin 1:stdout 2:stderr; do
	ln -s "/proc/self/fd/${number%:*}" "$1/dev/${number#*:}"
done
mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$1/run"
mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
cd "$1"
exec unshare --cgroup sh -c '
	mount -t cgroup2 cgroup2 sys/fs/cgroup &&
	pivot_root . mnt &&
	umount -l /mnt &&
	exec env -i container=chroot PATH="$0" /lib/systemd/systemd' "$4"
"""


class Failed(Exception):
    """What did not work."""
    left = ""  # the chroot in which it did not, and which stays


def lacks():
    """Returns what a chroot cannot be made without, or "" when nothing is missing."""
    if os.geteuid():
        return "only root can make a chroot"
    for program in ("debootstrap", "unshare", "git"):
        if not shutil.which(program):
            return f"{program} is missing; on Debian: apt-get install {program}"
    said = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, text=True)
    return f"no mounts of its own here: {said.stderr.strip()}" if said.returncode else ""


def mirror():
    """Returns the archive of Debian that apt is configured for."""
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
         "Origin: Debian", "Label: Debian"], capture_output=True, text=True).stdout.split()
    return targets[0] if targets else "http://deb.debian.org/debian/"


def ccache_folder():
    with contextlib.suppress(OSError):
        said = subprocess.run(["ccache", "--get-config=cache_dir"], capture_output=True, text=True)
        if said.returncode == 0:
            return said.stdout.strip()
    return os.path.expanduser("~/.cache/ccache")


def kept(name):
    """Returns the path of what is kept by this name between runs."""
    return os.path.join(os.environ.get("NABC_CHROOTS", "/var/cache/nabc-chroots"), name)


def release(name):
    """Returns the folder with what debootstrap makes, made if it is not there."""
    made = kept(name)
    if os.path.exists(made):
        return made
    os.makedirs(kept(""), exist_ok=True)
    new = tempfile.mkdtemp(prefix=f"{name}.", dir=kept(""))
    log = kept(f"{name}.log")
    try:
        with open(log, "w") as file:
            # What it mounts there must not outlive it.
            done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child",
                                   "debootstrap", "--variant=minbase", name, new, mirror()],
                                  stdout=file, stderr=subprocess.STDOUT)
        if done.returncode:
            raise Failed(f"debootstrap failed; see {log}")
        os.chmod(new, 0o755)
        os.rename(new, made)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return made


class Chroot:
    """A copy of a release that one caller uses; with "with" it is removed, unless something failed."""

    def __init__(self, name, made=None):
        """made: the folder to copy; of the release, if there is none."""
        self.packages = kept(f"packages-{name}")
        self.ccache = ccache_folder()
        for each in (os.path.join(self.packages, "partial"), self.ccache):
            os.makedirs(each, exist_ok=True)
        made = made or release(name)
        self.root = tempfile.mkdtemp(prefix=f"{name}-", dir=kept(""))
        subprocess.run(["cp", "-a", "--reflink=auto", os.path.join(made, "."), self.root], check=True)
        os.makedirs(self.path("/root/.cache/ccache"), exist_ok=True)
        for each in ("/etc/resolv.conf", "/etc/hosts"):
            shutil.copy(each, self.path(each))

    @classmethod
    def prepared(cls, release_name, name, words):
        """Returns a copy of a chroot of the release in which words has run, which is kept."""
        digest = hashlib.sha256("\0".join(words).encode()).hexdigest()[:8]
        made = kept(f"{release_name}-{name}-{digest}")
        if not os.path.exists(made):
            for old in glob.glob(glob.escape(kept(f"{release_name}-{name}-")) + "*"):
                shutil.rmtree(old)
            new = cls(release_name)
            try:
                new.must(words, DEBIAN_FRONTEND="noninteractive")
                os.rename(new.root, made)
            except BaseException:
                new.remove()
                raise
        return cls(release_name, made)

    def __enter__(self):
        return self

    def __exit__(self, kind, failure, trace):
        if isinstance(failure, Failed):
            failure.left = self.root
        else:
            self.remove()

    def path(self, inside):
        """Returns where the file that the chroot calls inside is."""
        return os.path.join(self.root, inside.lstrip("/"))

    def remove(self):
        shutil.rmtree(self.root)

    def clone(self, repository, place):
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", repository, self.path(place)],
                       check=True)

    def command(self, words, user="root", folder="/", **environment):
        """Returns the command that runs words in the chroot, in folder, as user, with environment only."""
        home = "/root" if user == "root" else f"/home/{user}"
        variables = {"PATH": PATH, "HOME": home, **environment}
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh",
                self.root, self.packages, self.ccache, f"--userspec={user}:{user}", self.root,
                "env", "-i", f"--chdir={folder}",
                *(f"{name}={value}" for name, value in variables.items()), *words]

    def run(self, words, **how):
        """Returns the exit status of words."""
        return subprocess.run(self.command(words, **how), stdin=subprocess.DEVNULL).returncode

    def must(self, words, **how):
        if self.run(words, **how):
            raise Failed(f"this failed: {' '.join(words)}")

    def install(self, *packages):
        self.must(["sh", "-c", "apt-get -q -q -y install --no-install-recommends \"$@\" >/dev/null",
                   "sh", *packages], DEBIAN_FRONTEND="noninteractive")


def main(say, name, work):
    """Calls work where chroots can be made; returns the exit status: 0, 1 if it failed, or 77."""
    lack = lacks()
    if lack:
        say(f"skipped: {lack}")
        return 77
    # So that what runs in the chroot ends as well.
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(1))
    try:
        work()
    except Failed as failure:
        say(f"{name}: {failure}")
        if failure.left:
            say(f"the chroot is left as {failure.left}")
        return 1
    return 0


def cgroup():
    """Returns a new cgroup below that of this process."""
    with open("/proc/self/mounts") as mounts:
        places = [line.split()[1] for line in mounts if line.split()[2] == "cgroup2"]
    with open("/proc/self/cgroup") as file:
        own = re.search("^0::/(.*)$", file.read(), re.M)
    if not places or not own:
        raise Failed("systemd cannot start: no file system cgroup2 is mounted")
    return tempfile.mkdtemp(prefix="nabc-boot-", dir=os.path.join(places[0], own[1]))


STARTED = ("running", "degraded")  # what systemd says of itself; degraded: some unit has failed


class Booted:
    """A chroot in which systemd runs, from with until its end; its network is a loopback alone."""

    def __init__(self, chroot):
        self.chroot = chroot

    def __enter__(self):
        self.cgroup = cgroup()
        self.parent = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child",
             "sh", "-c", BOOT, "sh", self.chroot.root, self.chroot.packages, self.cgroup, PATH],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            # Nothing but its socket tells from outside that it takes commands.
            while self.said(["systemctl", "is-system-running", "--wait"]) not in STARTED:
                if self.parent.poll() is not None:
                    raise Failed(f"systemd does not start in {self.chroot.root}")
                time.sleep(0.1)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        # All processes of the namespace end with its first one.
        self.parent.kill()
        self.parent.wait()
        folders = [folder for folder, *_ in os.walk(self.cgroup, topdown=False)]
        for folder in folders:
            while True:
                try:
                    os.rmdir(folder)
                    break
                except OSError:
                    time.sleep(0.1)

    def command(self, words, folder="/", **environment):
        children = f"/proc/{self.parent.pid}/task/{self.parent.pid}/children"
        with open(children) as file:
            first = file.read().split()
        if not first:
            raise Failed(f"systemd does not run in {self.chroot.root}")
        variables = {"PATH": PATH, "HOME": "/root", **environment}
        return ["nsenter", "--target", first[0], "--mount", "--uts", "--ipc", "--net", "--pid",
                "--cgroup", "--root", "--wd", "env", "-i", f"--chdir={folder}",
                *(f"{name}={value}" for name, value in variables.items()), *words]

    def said(self, words, **how):
        """Returns the standard output of words, or "" where it cannot run."""
        with contextlib.suppress(Failed):
            return subprocess.run(self.command(words, **how), stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True).stdout.strip()
        return ""
