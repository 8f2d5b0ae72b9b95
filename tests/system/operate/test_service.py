# SPDX-License-Identifier: MIT
"""The installed files for systemd, and the initial configuration."""

import os
import re
import shutil
import subprocess

from server import BUILD, GENERATE, SWEET, once

SOURCES = os.path.join(os.environ["srcdir"], "sweet")


def test_units(tmp_path):
    with open(os.path.join(BUILD, "sweet", "sweet.service")) as file:
        text = file.read()
    assert "@" not in re.sub(r"@system-service", "", text)
    # The program is not installed yet, which systemd would report.
    text = re.sub(r"^(Exec\w+=)\S*/sweet ", rf"\1{SWEET} ", text, flags=re.M)
    (tmp_path / "sweet.service").write_text(text)
    shutil.copy(os.path.join(SOURCES, "sweet.socket"), tmp_path)
    settings = dict(re.findall(r"^(\w+)=(.*)$", text, re.M))
    assert (settings["Type"], settings["KillMode"]) == ("notify", "mixed")
    # "systemctl reload" runs this command and uses its exit status.
    assert re.findall(r"^ExecReload=(.*)$", text, re.M) == [f"{SWEET} --reload $MAINPID"]
    assert (settings["NoNewPrivileges"], settings["ProtectSystem"]) == ("yes", "strict")
    # What it suggests in comments is valid as well.
    suggested = re.findall(r"^# ((?:SupplementaryGroups|LoadCredential)=.*)$", text, re.M)
    assert len(suggested) == 3
    folder = tmp_path / "sweet.service.d"
    folder.mkdir()
    (folder / "override.conf").write_text("\n".join(["[Service]", *suggested, ""]))
    if shutil.which("systemd-analyze"):
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", tmp_path / "sweet.service",
             tmp_path / "sweet.socket"], capture_output=True, text=True)
        said = [line for line in done.stderr.splitlines() if "sweet." in line]
        assert not said, said


def test_example(tmp_path):
    path = os.path.join(SOURCES, "sweet.conf")
    with open(path) as file:
        text = file.read()
    # This machine may lack the folders that it serves.
    config = tmp_path / "sweet.conf"
    config.write_text(text.replace("/srv", str(tmp_path)))
    done = once("--check-config", "--config", config)
    assert done.returncode == 0, done.stderr
    # The lines in comments are valid as well, except for files in other places.
    (tmp_path / "users").write_text("")
    (tmp_path / "example").mkdir()
    text = re.sub(r"^#(\w[\w-]*=|\[)", r"\1", text, flags=re.M).replace("/srv", str(tmp_path))
    for name, here in {"/etc/sweet/users": tmp_path / "users", "/var/log/sweet": tmp_path,
                       "/run/sweet": tmp_path, "/usr/local/bin/search-worker": GENERATE}.items():
        assert name in text
        text = text.replace(name, str(here))
    # Two ways to set the address.
    text = text.replace("listen=unix:", "#listen=unix:")
    config.write_text(text)
    done = once("--check-config", "--config", config)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^[a-z-]+=", text, re.M)) > 25
