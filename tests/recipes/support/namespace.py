# SPDX-License-Identifier: MIT
"""Mounts and a network of the tests' own: applications use the paths and ports that they have on
Debian, and leave nothing behind on this machine."""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess

CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
SIOCSIFFLAGS, IFF_UP = 0x8914, 1

libc = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    if getattr(libc, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def mount(source, target, kind, flags, data=None):
    call("mount", os.fsencode(source), os.fsencode(target), kind and kind.encode(),
         ctypes.c_ulong(flags), data and os.fsencode(data))


def enter():
    """Puts this process into namespaces of its own; raises OSError if it may not."""
    call("unshare", CLONE_NEWNS | CLONE_NEWNET)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    # Sockets of daemons that run on this machine are not seen.
    mount("none", "/run", "tmpfs", 0)
    os.makedirs("/run/lock", exist_ok=True)
    os.chmod("/run/lock", 0o1777)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def cover(path, folder, empty=False):
    """Mounts a copy of the folder at path, or an empty one, over it until the end of this process.
    The copy is in `folder`, which this function makes."""
    if empty:
        status = os.stat(path)
        os.mkdir(folder)
        os.chown(folder, status.st_uid, status.st_gid)
        os.chmod(folder, status.st_mode & 0o7777)
    else:
        subprocess.run(["cp", "-a", path, folder], check=True)
    mount(folder, path, None, MS_BIND)
