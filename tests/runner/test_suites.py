# SPDX-License-Identifier: MIT
"""The tiers: no test is missing from them, and each pair of a test and a backend, and
of a backend and a sanitizer, is in those that a merge requires."""

import glob
import os
import re
import subprocess
import types

import pytest

import estimates
import main
import suites
from conftest import HERE, TOP

COMMAND = ["python3", os.path.join(HERE, "main.py")]


@pytest.fixture
def context(tmp_path):
    return suites.Context(TOP, str(tmp_path), estimates.Times(tmp_path / "none"), 2)


def jobs(context, *tiers):
    return [job for suite in suites.SUITES if set(suite.tiers) & set(tiers)
            for job in suite.jobs(context, suite)]


def test_names(context):
    for tier in suites.TIERS:
        names = [job.name for job in jobs(context, tier)]
        assert len(names) == len(set(names)) and names
        logs = [job.log for job in jobs(context, tier)]
        assert len(logs) == len(set(logs))


def test_jobs_wait_for_builds_that_are_made(context):
    for suite in suites.SUITES:
        made = {job.name for job in suites.builds(context, [suite])}
        for job in suite.jobs(context, suite):
            assert set(job.after) <= made, suite.name


@pytest.mark.parametrize("tier", (suites.QUICK, suites.MORE, suites.ALL))
def test_all_has_what_the_others_have(tier):
    """Except those that are a part of another suite."""
    parts = {"kernel-main": "kernel", "valgrind-main": "valgrind-system",
             "asan-pairs": "asan-uring", "tsan-system": "tsan-epoll"}
    every = {suite.name for suite in suites.SUITES if suites.ALL in suite.tiers}
    assert {parts.get(suite.name, suite.name) for suite in suites.SUITES if tier in suite.tiers} <= every


def test_chosen_suites_have_the_time_of_their_longest_tier():
    def seconds(only, tier=suites.QUICK):
        given = types.SimpleNamespace(only=only, tier=tier, first="")
        return main.limit(given, main.chosen(given)[0])

    assert seconds("") == suites.TIERS[suites.QUICK][1]
    assert seconds("", suites.MORE) == suites.TIERS[suites.MORE][1]
    assert seconds("tsan-system") == suites.TIERS[suites.MORE][1]
    assert seconds("runner,torture") == suites.TIERS[suites.ALL][1]


def option(job, name):
    found = [word.partition("=")[2] for word in job.command if word.startswith(f"--{name}=")]
    return found[0].split(",") if found else []


def pairs(context, *tiers):
    """{(tree, backend): whether all tests have it, or only some}."""
    found = {}
    for job in jobs(context, *tiers):
        tree = os.path.basename(job.command[1]) if "in-build.sh" in job.command[0] else ""
        marks = job.command[job.command.index("-m") + 1] if "-m" in job.command else ""
        for backend in option(job, "backends"):
            found.setdefault((tree, backend), set()).add("thin" if "--thin" in job.command else marks)
    return {pair: "" in marks or {"thorough", "not thorough"} <= marks for pair, marks in found.items()}


def test_pairs_of_a_merge(context):
    found = pairs(context, suites.QUICK, suites.MORE)
    for backend in ("first", "no-uring", "none"):
        assert found["build", backend], backend
    # With epoll all except the tools of the benchmarks.
    assert ("build-asan", "epoll") in found
    assert {("build-asan", "uring"), ("build-asan", "no-uring"), ("build-tsan", "epoll"),
            ("build-tsan", "no-uring")} <= set(found)


def test_products_of_all(context):
    found = pairs(context, suites.ALL)
    for backend in ("first", "epoll", "no-uring", "none"):
        assert found["build", backend], backend
    assert {("build-asan", backend) for backend in ("uring", "epoll", "no-uring")} <= set(found)
    assert {("build-tsan", backend) for backend in ("epoll", "no-uring")} <= set(found)


@pytest.mark.parametrize("slice_", [suites.SLICE, 1])
def test_every_file_is_in_one_bundle(context, monkeypatch, slice_):
    monkeypatch.setattr(suites, "SLICE", slice_)
    parts = {}
    for _, files, part, _ in suites.bundles(context, 1, ""):
        for path in files:
            parts.setdefault(path, []).append(part)
    assert set(parts) == set(suites.system_files(os.path.join(TOP, "tests")))
    for found in parts.values():
        count = len(found)
        assert found == [""] or found == [f"{number}/{count}" for number in range(1, count + 1)]


def jobs_of(context, name):
    (suite,) = (suite for suite in suites.SUITES if suite.name == name)
    return list(suite.jobs(context, suite))


def test_each_package_of_the_second_tier_is_hidden(context):
    hidden = {word for job in jobs_of(context, "without") if "--" in job.command
              for word in job.command[1:job.command.index("--")]}
    # No mark names these; the tests that use them are in without-any, or are built by them.
    assert suites.packages_of(suites.MORE) - hidden == {
        "check", "libhttp-parser-dev", "media-types", "python3-h2", "python3-wsproto"}


def test_each_suite_wants_what_its_tests_need(context):
    """Also if it runs alone, on a machine that has only what it wants."""
    for suite in suites.SUITES:
        if suite.name == "without-any":
            continue
        words = {os.path.basename(word) for job in suite.jobs(context, suite) for word in job.command}
        wanted = set(suite.packages.split())
        if "check-system.sh" in words:
            assert wanted >= set(suites.HARNESS), suite.name
        if words & set(suites.unit_names()):
            assert "check" in wanted, suite.name


def test_each_test_that_needs_something_runs_with_it_alone(context):
    alone = [word for job in jobs_of(context, "without") if "/alone-" in job.name
             for word in job.command if os.path.basename(word).startswith("test_")]
    marked = [path for path in suites.system_files(os.path.join(TOP, "tests"))
              if "mark.needs(" in suites.report.text_of(path)]
    assert set(alone) == set(marked)


def test_all_others_run_without_any_package(context):
    jobs = jobs_of(context, "without-any")
    assert all(job.command[1:3] == ["--all-but", "--"] and "not needs" in job.command for job in jobs)
    files = {word for job in jobs for word in job.command if os.path.basename(word).startswith("test_")}
    assert files == set(suites.system_files(os.path.join(TOP, "tests")))


def test_release_has_every_system_test():
    """make distcheck also detects a missing file, in the tier that runs least often."""
    named = set()
    for path in glob.glob(os.path.join(TOP, "tests", "**", "local.mk"), recursive=True):
        with open(path) as makefile:
            named |= set(re.findall(r"tests/system/[\w./-]+", makefile.read()))
    found = glob.glob(os.path.join(TOP, "tests", "system", "**", "*.py"), recursive=True)
    assert {os.path.relpath(path, TOP) for path in found} <= named


def test_units_are_those_of_the_build():
    with open(os.path.join(TOP, "tests", "local.mk")) as makefile:
        named = set(re.findall(r"^(?:\t|GLIB_UNITS = )tests/unit/[a-z0-9/-]+/(test-[a-z0-9-]+) ?\\?$",
                               makefile.read(), re.M))
    assert named == set(suites.unit_names())
    assert suites.BENCH_UNITS | suites.PINNING <= set(suites.unit_names())


# Units and fuzz targets that link more than the others of their folder.
LINK_MORE = {"tests_unit_sweet_coding_test_encoder", "tests_fuzz_fuzz_chunked_differential",
             "tests_fuzz_fuzz_request_differential"}


@pytest.mark.parametrize("folder, pattern", [("unit", "test-*.c"), ("fuzz", "fuzz-*.c")])
def test_one_line_adds_a_program(folder, pattern):
    """The other line that names one says which sources it consists of, or what it links more."""
    with open(os.path.join(TOP, "tests", *([] if folder == "unit" else [folder]), "local.mk")) as makefile:
        text = makefile.read()
    for path in glob.glob(os.path.join(TOP, "tests", folder, "**", pattern), recursive=True):
        program = os.path.relpath(path, TOP).removesuffix(".c")
        name = re.sub("[^a-z0-9]", "_", program)
        own = set(re.findall(rf"^{name}_([A-Z]+) ", text, re.M))
        assert own <= ({"LDADD"} if name in LINK_MORE else {"SOURCES"}), name
        assert len(re.findall(rf"^\t?(?:\w+ = )?{program}(?: \\)?$", text, re.M)) == 1


@pytest.mark.parametrize("value, status", [("#", 77), ("", 127)])
def test_units_of_a_build_without_check(tmp_path, value, status):
    (tmp_path / "config.status").write_text(f'S["HAVE_CHECK_TRUE"]="{value}"\n')
    done = subprocess.run(suites.unit("test-id"), cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == status
    if status == 77:
        assert done.stdout == "built without check; on Debian: apt-get install check\n"


def run(*arguments, **environment):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment})


def test_packages():
    few = run("--packages").stdout.split()
    assert "python3-pytest" in few and "chromium" not in few and "qemu-system-x86" not in few
    more = run("--more", "--packages").stdout.split()
    assert {"chromium", "nginx-light", "qemu-system-x86", "cppcheck"} <= set(more)
    assert "varnish" in run("--all", "--packages").stdout.split()
    recipes = run("--recipes", "--packages").stdout.split()
    assert {"python3-pytest", "dokuwiki", "php-fpm"} <= set(recipes) and "varnish" not in recipes
    assert run("--only", "analyze", "--packages").stdout.split() == ["clang", "cppcheck"]


def test_help_has_each_suite():
    done = run("--help")
    assert done.returncode == 0
    for suite in suites.SUITES:
        assert re.search(rf"^  {suite.name} .*{re.escape(suite.text)}", done.stdout, re.M)


@pytest.mark.parametrize("arguments, says", [
    (["--only", "nothing"], "run-tests: nothing is no suite; ./run-tests --help lists them\n"),
    (["--from", "kernel"], "run-tests: kernel is not in this tier; "),
    (["--quick", "--all"], "not allowed with argument"),
])
def test_bad_arguments(arguments, says):
    done = run(*arguments)
    assert done.returncode != 0 and says in done.stderr


def test_no_place_for_files(tmp_path):
    done = run("--only", "checks", TMPDIR=str(tmp_path / "none"))
    assert done.returncode == 1
    assert done.stderr == (f"run-tests: {tmp_path}/none cannot be written to: No such file or directory "
                           "(TMPDIR=DIR chooses another folder for temporary files)\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_full_folder(tmp_path):
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("no mount namespaces here")
    text = f"mount -t tmpfs -o size=3M none {tmp_path} && exec \"$@\""
    done = subprocess.run(["unshare", "-m", "sh", "-c", text, "sh", *COMMAND, "--only", "checks"],
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 1
    assert re.fullmatch(rf"run-tests: {tmp_path} has \d MiB left, and the tests want 2048 MiB .*\n", done.stderr)
