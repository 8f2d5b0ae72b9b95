# SPDX-License-Identifier: MIT
"""What README's commands say where they cannot work: a line that says what to do."""

import os
import shutil
import subprocess

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def commands(folder):
    """README's commands, in a folder that has nothing else."""
    os.makedirs(folder / "build-aux")
    for name in ("quickstart", "run-tests", "build-aux/steps.sh"):
        shutil.copy(os.path.join(TOP, name), folder / name)
    return folder


def said(folder, command, **environment):
    done = subprocess.run([f"./{command}"], cwd=folder, env={**os.environ, **environment},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 1, done.stdout
    assert len(done.stdout.splitlines()) == 1, done.stdout
    return done.stdout


def test_a_path_with_blanks(tmp_path):
    folder = commands(tmp_path / "a b")
    for command in ("quickstart", "run-tests"):
        assert "blanks in its path; move the tree" in said(folder, command)


def test_a_tree_that_cannot_be_written(tmp_path):
    folder = commands(tmp_path / "tree")
    (folder / "build").write_text("no folder")
    for command in ("quickstart", "run-tests"):
        assert "nothing can be written to" in said(folder, command)


def test_no_room(tmp_path):
    folder = commands(tmp_path / "tree")
    steps = folder / "build-aux/steps.sh"
    steps.write_text(steps.read_text().replace("ROOM=200", "ROOM=2000000000"))
    for command in ("quickstart", "run-tests"):
        assert "MiB left, and the build needs 2000000000 MiB" in said(folder, command)


def test_no_folder_for_temporary_files(tmp_path):
    folder = commands(tmp_path / "tree")
    assert "/nowhere has 0 MiB left" in said(folder, "quickstart", TMPDIR="/nowhere")


def test_variables_of_the_caller_stay(tmp_path):
    """sh has no local variables."""
    folder = commands(tmp_path / "tree")
    script = "me=x; folder=mine; . ./build-aux/steps.sh; ready 1; echo $folder"
    done = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True)
    assert done.stdout == "mine\n"


def test_a_umask_for_one_user(tmp_path):
    if os.geteuid():
        pytest.skip("only root runs tests as other users")
    folder = commands(tmp_path / "tree")
    os.chmod(folder / "quickstart", 0o700)
    assert f"chmod -R go+rX {folder}" in said(folder, "run-tests")
