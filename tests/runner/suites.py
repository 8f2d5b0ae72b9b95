# SPDX-License-Identifier: MIT
"""The suites: all of them, and their tiers.  A suite is a function that makes jobs;
SUITES contains for each its tiers, the packages that it requires besides those of
the build, and a description.  They start in this order.
"""

import dataclasses
import glob
import os
import re
import shutil
import sys
import typing

import report
import tier_path
from pool import Job

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "system", "support"), os.path.join(TESTS, "recipes", "support")]

QUICK, MORE, ALL, RECIPES = "quick", "more", "all", "recipes"
# Each tier: its description, and the seconds after which it has failed, whatever still runs.
TIERS = {
    QUICK: ("what everyone runs, within 12 minutes on two processors (default)", 1800),
    MORE: ("what a merge needs beside that; both within 40 minutes", 3300),
    ALL: ("everything but the recipes, within two and a half hours", 10800),
    RECIPES: ("the applications of doc/recipes/, which it installs, within 20 minutes", 2400),
}
BUNDLE = 24  # target seconds of system tests for one process of pytest, which takes 0.5 s to begin
SLICE = 30  # seconds above which a file is divided
# Tests wait more than they compute.
SYSTEM_WEIGHT, UNIT_WEIGHT, VALGRIND_WEIGHT = 0.33, 0.5, 0.66
HARDLY_ANY = 65536  # bytes of memory that may be locked
USUAL = 8 << 20

# Trees: their folders and configurations.
TREES = {
    "build": ["--enable-werror", "CFLAGS=-g1 -O2"],  # QUICK_CFLAGS of build-aux/steps.sh
    "build-asan": ["--enable-werror", "--enable-asan"],
    "build-tsan": ["--enable-werror", "--enable-tsan"],
    "build-clang": ["--enable-werror", "CFLAGS=-g1 -O2", "CC=clang"],
}
# Not run with sanitizers or Valgrind: tools of the benchmarks.
BENCH_UNITS = {"test-client-answer", "test-client-requests", "test-client-schedule",
               "test-client-times", "test-surge", "test-wan-link"}
# Unit tests that use pinned memory or an io_uring themselves: they get the usual limit of a user.
PINNING = {"test-async", "test-async-end", "test-access-log", "test-registered",
           "test-registered-limits", "test-ring",
           "test-send-op", "test-send-op-end", "test-transmit-hold", "test-transmit-learn",
           "test-transmit-reasons", "test-transmit-registered", "test-transmit-wire"}


@dataclasses.dataclass
class Suite:
    name: str
    tiers: tuple
    text: str  # for --help
    jobs: typing.Callable  # (Context, Suite) -> jobs
    packages: str = ""
    deadline: float = 300  # seconds of each job
    trees: tuple = ("build",)
    goals: str = ""  # of make in these trees, if not all of them is needed


@dataclasses.dataclass
class Context:
    """The input of the functions that make jobs."""
    top: str
    logs: str
    times: object
    processors: int
    seconds: dict = dataclasses.field(default_factory=dict)  # fuzz, torture: how long

    def script(self, *words):
        return os.path.join(self.top, *words)

    def job(self, suite, name, command, **more):
        name = f"{suite.name}/{name}"
        log = os.path.join(self.logs, name.replace("/", ":") + ".log")
        more.setdefault("deadline", suite.deadline)
        return Job(name, suite.name, command, log, folder=self.top, **more)


def built(tree):
    return (f"build/{tree}",)


# --- building ----------------------------------------------------------------------------


def builds(context, suites_to_run):
    """A job for each tree that suites use, and the bootstrap before them."""
    trees = {tree: [one.goals for one in suites_to_run if tree in one.trees] for tree in TREES}
    trees = {tree: goals for tree, goals in trees.items() if goals}
    if not trees:
        return
    suite = Suite("build", tuple(TIERS), "", None, deadline=1200)
    shell = "me=run-tests; . ./build-aux/steps.sh; "
    yield context.job(suite, "bootstrap", ["sh", "-c", shell + "bootstrap"], rank=3000)
    for number, (tree, goals) in enumerate(trees.items()):
        build = "build_all" if "" in goals else f"goals='{' '.join(sorted(set(goals)))}'; build"
        yield context.job(
            suite, tree, ["sh", "-c", f'{shell}{build} "$@"', "sh", tree, *TREES[tree]],
            # Not all processors, so that tests that wait run meanwhile.
            weight=max(1, context.processors * 0.7), rank=2000 - number,
            after=("build/bootstrap",))


# --- checks and units --------------------------------------------------------------------


def in_tree(context, tree, *command):
    return [context.script("tests", "in-build.sh"), os.path.join(context.top, tree), *command]


def checks(context, suite):
    for name in ("check-abi", "check-blocking", "check-calls", "check-man", "check-docs", "check-floors",
                 "check-hardening", "check-lists", "check-memory", "check-mirror", "check-names", "check-uses",
                 "check-version", "check-words", "check-readme"):
        command = in_tree(context, "build", context.script("tests", f"{name}.sh"))
        yield context.job(suite, name, command, after=built("build"))
    yield check_includes(context, suite, PRODUCT)
    yield context.job(suite, "check-format", [context.script("tests", "check-format.sh")])


PRODUCT = ("libnabc", "libnabc-fcgi", "libnabc-glib", "nabcctl", "sweet", "cgi-examples", "examples")


def check_includes(context, suite, folders):
    return context.job(suite, "check-includes",
                       [sys.executable, context.script("tests", "check-includes.py"), "-j1", *folders])


def includes(context, suite):
    yield check_includes(context, suite, ("bench", "tests"))


def runner(context, suite):
    results = os.path.join(context.logs, "runner:runner.json")
    # ./run-tests has chosen the Python to which Debian's pytest belongs.
    command = [sys.executable, "-m", "pytest", "-q", "-rfEs", "-p", "no:cacheprovider",
               context.script("tests", "runner")]
    yield context.job(suite, "runner", ["sh", "-c", WITH_PYTEST, "sh", *command],
                      environment={"PYTHONDONTWRITEBYTECODE": "1"}, results=results)


WITH_PYTEST = """"$1" -c "import pytest" 2>/dev/null || {
	echo "pytest is missing; on Debian: apt-get install python3-pytest"
	exit 77
}
exec "$@" """


TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def unit_names(folder="unit", pattern="test-*.c"):
    found = glob.glob(os.path.join(TESTS, folder, "**", pattern), recursive=True)
    return sorted(os.path.basename(path).removesuffix(".c") for path in found)


def unit_path(name):
    """The path of the program in a build; its folder corresponds to that of its source."""
    found = glob.glob(os.path.join(TESTS, "unit", "**", f"{name}.c"), recursive=True)
    if not found:
        sys.exit(f"{name}: there is no such unit test")
    return os.path.relpath(found[0], os.path.dirname(TESTS)).removesuffix(".c")


def units(tree, fuzz=True, bench=False, **environment):
    def make(context, suite):
        for name in unit_names():
            if bench or name not in BENCH_UNITS:
                yield context.job(suite, name, in_tree(context, tree, *unit(name)),
                                  after=built(tree), weight=UNIT_WEIGHT, environment=environment)
        for name in unit_names("fuzz", "fuzz-*.c") if fuzz else ():
            yield context.job(suite, name, in_tree(context, tree, *seeds(name)),
                              after=built(tree), weight=UNIT_WEIGHT)
    return make


def clang(context, suite):
    if suite.trees:
        yield from units("build-clang")(context, suite)
        return
    why = "clang is missing; on Debian: apt-get install clang"
    yield context.job(suite, "skipped", ["sh", "-c", 'echo "$1"; exit 77', "sh", why])


# program CONDITION PACKAGE: a program that is not built if a library is missing, according to the
# build.
UNLESS_WITHOUT = """[ -x "$1" ] || ! grep -qxF 'S["'"$2"'_TRUE"]="#"' config.status || {
	echo "built without $3; on Debian: apt-get install $3"
	exit 77
}
exec "$1" """


def unit(name):
    return ["sh", "-c", UNLESS_WITHOUT, "sh", unit_path(name), "HAVE_CHECK", "check"]


def seeds(name):
    return ["sh", "-c", UNLESS_WITHOUT, "sh", f"tests/fuzz/{name}", "HAVE_HTTP_PARSER",
            "libhttp-parser-dev"]


VALGRIND = ("valgrind --quiet --vgdb=no --read-inline-info=no --error-exitcode=99 --leak-check=full "
            f"--suppressions={TESTS}/valgrind.supp")


def valgrind_main(context, suite):
    """Servers from their start to their end."""
    yield context.job(suite, suite.name,
                      in_tree(context, "build", context.script("tests", "check-system.sh"),
                              "--backends=epoll", "--thin",
                              context.script("tests", "system", "static", "test_static.py")),
                      after=built("build"),
                      environment={**system_environment(context, "build"), "SWEET_UNDER": VALGRIND})


def valgrind_units(context, suite):
    for name in sorted(set(unit_names()) - BENCH_UNITS):
        yield context.job(suite, name, [context.script("tests", "check-valgrind.sh"), name],
                          weight=VALGRIND_WEIGHT, after=built("build"),
                          environment={"builddir": context.script("build")})


def nobody(memory):
    """As nobody, since locked memory has no limit for root."""
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--inh-caps=-all",
            "prlimit", f"--memlock={memory}", "--core=0"] if os.geteuid() == 0 else [
            "prlimit", f"--memlock={memory}", "--core=0"]


def unit_memory(name):
    return USUAL if name in PINNING else HARDLY_ANY


def is_open(folder):
    """Whether other users can access it."""
    while folder != "/":
        if not os.stat(folder).st_mode & 0o001:
            return False
        folder = os.path.dirname(folder)
    return True


def unprivileged(context, suite):
    if os.geteuid() == 0 and not is_open(context.top):
        why = f"{context.top} lies in a folder that other users cannot enter"
        yield context.job(suite, "skipped", ["sh", "-c", 'echo "$1"; exit 77', "sh", why])
        return
    for name in unit_names():
        command = [*nobody(unit_memory(name)), *unit(name)]
        yield context.job(suite, name, in_tree(context, "build", *command),
                          after=built("build"), weight=UNIT_WEIGHT)
    yield from system("build", "epoll,none", "--thin", prefix=nobody(HARDLY_ANY), marks=NOT_BENCH,
                      choose="not test_consumer", SWEET_THREADS="1")(context, suite)


# --- system tests ------------------------------------------------------------------------


def system_files(tests, areas=("*",)):
    return sorted(path for area in areas
                  for path in glob.glob(os.path.join(tests, "system", area, "test_*.py")))


def bundles(context, factor, marks, areas=("*",)):
    """[(name, files, slice, seconds)]: the tests for each process of pytest; factor: how many
    times longer than listed they take here."""
    files = system_files(context.script("tests"), areas)
    if marks == "needs":
        files = [path for path in files if "mark.needs(" in report.text_of(path)]
    loads = sorted(((context.times.of_file(os.path.basename(path)) * factor, path)
                    for path in files), reverse=True)
    made, together, load = [], [], 0
    for seconds, path in loads:
        name = os.path.basename(path).removesuffix(".py")
        count = -int(-seconds // SLICE) if seconds > SLICE else 1
        if count > 1:
            made += [(f"{name}-{part}", [path], f"{part}/{count}", seconds / count)
                     for part in range(1, count + 1)]
        elif seconds >= BUNDLE / 2:
            made.append((name, [path], "", seconds))
        else:
            together.append(path)
            load += seconds
            if load >= BUNDLE:
                made.append((f"{name}-and-others", together, "", load))
                together, load = [], 0
    if together:
        name = os.path.basename(together[-1]).removesuffix(".py")
        made.append((f"{name}-and-others", together, "", load))
    return made


def system_environment(context, tree):
    """The environment for the system tests of a tree."""
    # Installation links again, which must not happen while other tests run.
    found = {"NABC_INSTALLED": os.path.join(context.top, tree, "installed")}
    if tree == "build-tsan":
        # TSan does not see the locks of GLib's slices.
        found["G_SLICE"] = "always-malloc"
        found["TSAN_OPTIONS"] = "suppressions=" + os.path.join(TESTS, "tsan-exceptions.txt")
    return found


def packages_of_build(top):
    """Those that build-aux/steps.sh lists, and the compiler that CC names."""
    text = report.text_of(os.path.join(top, "build-aux", "steps.sh"))
    listed = re.search(r'^BUILD_PACKAGES="(.*)"$', text, re.M)[1].split()
    return listed + (["clang"] if os.environ.get("CC") == "clang" else [])


def only_packages(context, name, packages):
    """The environment of tests that shall find the programs of these packages and of no others."""
    path = tier_path.make(os.path.join(context.logs, name), packages)
    return {"PATH": path, "NABC_ONLY_PATH": "1"} if path else {}


def of_first_tier(make):
    """The suite sees only what the first tier installs."""
    def jobs(context, suite):
        packages = [*packages_of_build(context.top), *sorted(packages_of(QUICK))]
        found = only_packages(context, "programs", packages)
        for job in make(context, suite):
            job.environment = {**job.environment, **found}
            yield job
    return jobs


def system(tree, backends, *options, marks="", choose="", prefix=(), factor=1, weight=SYSTEM_WEIGHT,
           areas=("*",), **environment):
    def make(context, suite):
        more = [f"--backends={backends}", *options]
        more += ["-m", marks] if marks else []
        more += ["-k", choose] if choose else []
        for name, files, part, seconds in bundles(context, factor, marks, areas):
            arguments = [*more, *([f"--slice={part}"] if part else []), *files]
            yield context.job(
                suite, name,
                in_tree(context, tree, *prefix, context.script("tests", "check-system.sh"), *arguments),
                after=built(tree), weight=weight, rank=seconds,
                environment={**system_environment(context, tree), **environment},
                results=os.path.join(context.logs, f"{suite.name}:{name}.json"))
    return make


# --- without packages --------------------------------------------------------------------


def packages_of(*tiers):
    """The packages of the suites of these tiers."""
    return {one for suite in SUITES if set(suite.tiers) & set(tiers)
            for words in suite.packages.split() for one in words.split("|") if one}


def hidden(context, job, name, *packages):
    """The job as if packages were not installed."""
    job.command = [context.script("tests", "without"), *packages, "--", *job.command]
    job.suite, _, _ = name.partition("/")
    job.name, job.log = name, os.path.join(context.logs, name.replace("/", ":") + ".log")
    job.results = job.results and job.log.removesuffix(".log") + ".json"
    # To be skipped is what is wanted.
    job.environment = {**job.environment, "NABC_NO_SKIP": ""}
    return job


def naming(context, package):
    """Returns the files of system tests whose marks can name the package."""
    from tools import PACKAGES
    names = [name for name, one in PACKAGES.items() if one == package]
    texts = ((path, report.text_of(path)) for path in system_files(context.script("tests")))
    return [path for path, text in texts
            if "mark.needs(" in text and any(f'"{name}"' in text for name in names)]


def says(job, package):
    """Whether the script of a check names the package."""
    return any(re.search(rf"\b{re.escape(package)}\b", report.text_of(word)) for word in job.command
               if os.path.basename(word).startswith("check-"))


def without(context, suite):
    """Without each package of the second tier: the tests whose marks name it, and the suites that
    want it.  Then each test with its packages alone: what its marks do not name may be missing."""
    more = {"after": built("build"), "weight": SYSTEM_WEIGHT}
    for package in sorted(packages_of(MORE)):
        name = f"{suite.name}/{package}"
        files = naming(context, package)
        if files or package in HARNESS:
            command = in_tree(context, "build", context.script("tests", "check-system.sh"),
                              "--backends=first,none", f"--lacking={package}", *files)
            yield hidden(context, context.job(
                suite, package, command, environment=system_environment(context, "build"),
                results="json", **more), name, package)
        for other in SUITES:
            if other.name in WITHOUT and package in re.split(r"[ |]", other.packages):
                for job in other.jobs(context, other):
                    if other.jobs is not checks or says(job, package):
                        words = dict.fromkeys([name, *job.name.split("/")])
                        yield hidden(context, job, "-".join(words), package)
    for name, files, part, seconds in bundles(context, 1, "needs"):
        yield context.job(
            suite, f"alone-{name}",
            in_tree(context, "build", sys.executable, context.script("tests", "runner", "alone.py"),
                    "--backends=first,none", *([f"--slice={part}"] if part else []), *files),
            rank=seconds, environment=system_environment(context, "build"),
            results=os.path.join(context.logs, f"{suite.name}:alone-{name}.json"), **more)


def without_any(context, suite):
    """All others, without any package of the first two tiers but HARNESS."""
    for job in system("build", "first,none", marks="not needs")(context, suite):
        yield hidden(context, job, job.name, "--all-but")


# --- recipes -----------------------------------------------------------------------------


def recipe_files():
    return sorted(glob.glob(os.path.join(TESTS, "recipes", "test_*.py")))


def recipes(context, suite):
    for path in recipe_files():
        name = os.path.basename(path).removeprefix("test_").removesuffix(".py")
        command = [sys.executable, "-m", "pytest", "-q", "-rfEs", "-p", "no:cacheprovider", path]
        yield context.job(suite, name, in_tree(context, "build", "sh", "-c", WITH_PYTEST, "sh", *command),
                          after=built("build"), environment={"PYTHONDONTWRITEBYTECODE": "1"},
                          results=os.path.join(context.logs, f"{suite.name}:{name}.json"))


# --- the others --------------------------------------------------------------------------


def large(context, suite):
    """Bodies that are larger than all memory."""
    yield context.job(suite, suite.name,
                      in_tree(context, "build", context.script("tests", "check-system.sh"),
                              "--backends=first",
                              context.script("tests", "system", "upstream-http",
                                             "test_upstream_http_large.py")),
                      after=built("build"),
                      environment={**system_environment(context, "build"), "SWEET_LARGE_GB": "10"})


def script(*words, weight=1, rank=0, **environment):
    """One script of the tree, with the build's environment."""
    def make(context, suite):
        environment_ = {"builddir": context.script("build"), "srcdir": context.top, **environment}
        yield context.job(suite, suite.name, [context.script(words[0]), *words[1:]], weight=weight,
                          rank=rank, after=tuple(f"build/{tree}" for tree in suite.trees),
                          environment=environment_)
    return make


def make(target, spare=0, **settings):
    """A target of the build's Makefile, by all processors but as many as are to spare."""
    def jobs(context, suite):
        weight = max(1, context.processors - spare)
        known = {**context.seconds, "beside": 2 * weight}
        values = [f"{name}={known.get(value, value)}" for name, value in settings.items()]
        yield context.job(suite, suite.name,
                          ["make", "-C", "build", f"-j{context.processors}", target, *values],
                          weight=weight, after=built("build"))
    return jobs


def kernels(context, suite):
    for series in ("6.1", "6.12"):
        yield context.job(suite, series, [context.script("tests", "kernel", "check-kernel.sh")],
                          after=built("build"), rank=100,
                          environment={"builddir": context.script("build"), "KERNELS": series})


def bare(context, suite):
    # README's commands there build in a clone of their own; nothing else should run meanwhile.
    yield context.job(suite, suite.name, [context.script("tests", "bare"), "trixie", "--more"],
                      weight=context.processors, rank=-100)


def tls_proofs(context, suite):
    # fuzzer.py runs two programs at a time.
    for name, weight in (("fuzzer", 2), ("testssl", 1), ("sslyze", 1)):
        command = [sys.executable, context.script("tests", "tls-proofs", f"{name}.py")]
        yield context.job(suite, name, in_tree(context, "build", *command), after=built("build"),
                          weight=min(weight, context.processors), rank=100,
                          environment={"PYTHONDONTWRITEBYTECODE": "1"})


# The other suites that run without each of their packages.
WITHOUT = {"checks", "runner", "valgrind-main", "kernel-main", "analyze", "includes"}

QEMU = ("busybox-static cpio curl debian-archive-keyring gcc-12 iproute2 kmod libelf1|libelf1t64 "
        "qemu-system-x86 xz-utils")
PEERS = ("apache2-bin ethtool gnuplot-nox h2o| haproxy httperf iproute2 libc6-dbg libfcgi-dev "
         "lighttpd lighttpd-mod-openssl nghttp2-client nginx-light openssl tcpdump valgrind varnish "
         "wrk")
# Small ones; none starts a service.
SYSTEM = ("apache2-utils brotli curl ethtool iproute2 libfcgi-dev media-types nghttp2-client openssl "
          "python3-h2 python3-pytest python3-wsproto spawn-fcgi tcpdump wrk zstd")
UNITS = "check libhttp-parser-dev"
NOT_BENCH = "not bench"
HARNESS = ("curl", "python3-pytest", "wrk")  # without these check-system.sh runs no test


def packages_of_recipes():
    import page
    return " ".join(["chromium", "curl", "python3-pytest", *page.packages()])


def programs_of_others():
    from tools import PACKAGES
    return " ".join(sorted({*HARNESS, *PACKAGES.values()}))


SUITES = [
    Suite("checks", (QUICK, ALL), "the manual, the floors, the form, hardening, README's programs", checks,
          "abigail-tools clang-format curl iwyu mandoc"),
    Suite("runner", (QUICK, ALL), "what runs the tests itself", runner,
          "clang-format iwyu python3-pytest", trees=()),
    Suite("system", (QUICK, ALL), "the whole server, by the backend that the kernel offers first",
          of_first_tier(system("build", "first,none", marks="not thorough")), SYSTEM),
    Suite("units", (QUICK, ALL), "a program for each source; the seeds of the fuzzers",
          units("build", bench=True), UNITS),
    Suite("asan", (QUICK, ALL), "units and seeds with the address and undefined-behaviour sanitizers",
          units("build-asan"), UNITS, trees=("build-asan",), goals="unit-programs"),

    Suite("valgrind-main", (MORE,), "servers under Valgrind, from their start to their end",
          valgrind_main, f"{' '.join(HARNESS)} valgrind", deadline=600),
    Suite("kernel-main", (MORE,), "a guest of QEMU boots, and runs the module's main tests; kernel TLS",
          script("tests/kernel/check-kernel.sh", "test-send", "test-library", "test-torture-tls",
                 rank=500, KERNELS="6.1"),
          QEMU, deadline=600),
    Suite("asan-system", (MORE, ALL), "the whole server with these sanitizers, by epoll",
          system("build-asan", "epoll,none", marks=NOT_BENCH, factor=2.5), SYSTEM,
          trees=("build-asan",)),
    Suite("no-uring", (MORE, ALL), "the whole server where io_uring is refused",
          system("build", "no-uring"), SYSTEM),
    Suite("asan-pairs", (MORE,), "each system test with these sanitizers, by io_uring or without it",
          system("build-asan", "uring,no-uring", "--thin", marks=NOT_BENCH), SYSTEM,
          trees=("build-asan",)),
    # TSan does not see the locks of GLib's slices.
    Suite("tsan", (MORE, ALL), "units with the thread sanitizer",
          units("build-tsan", fuzz=False, G_SLICE="always-malloc"), UNITS, trees=("build-tsan",), goals="unit-programs"),
    # TSan does not see descriptors that io_uring opens and reports them as errors.
    Suite("tsan-system", (MORE,), "each system test with it, by epoll or without io_uring",
          system("build-tsan", "epoll,no-uring,none", "--thin", marks=NOT_BENCH,
                 choose="not takes_io_uring"),
          SYSTEM, trees=("build-tsan",)),
    Suite("clang", (MORE, ALL), "clang builds all of it without a warning; units and seeds", clang,
          f"clang {UNITS}", trees=("build-clang",) if shutil.which("clang") else (), goals="all-am unit-programs"),
    Suite("unprivileged", (MORE, ALL), "as a user who may lock 64 KiB of memory, by one thread",
          unprivileged, f"{SYSTEM} {UNITS}"),
    Suite("over-tls", (MORE, ALL), "the whole server over TLS, where clients can use it",
          system("build", "first", marks=NOT_BENCH, SWEET_OVER="tls"), SYSTEM),
    Suite("tls-openssl", (MORE, ALL), "tests of TLS and HTTP/2, where OpenSSL makes all records",
          system("build", "first,none", marks=NOT_BENCH, areas=("tls", "http2"),
                 SWEET_TLS_RECORDS="openssl"), SYSTEM),
    Suite("over-h2", (MORE, ALL), "the same over HTTP/2 and TLS, by clients that translate",
          system("build", "first", marks=NOT_BENCH, SWEET_OVER="h2"), SYSTEM),
    Suite("thorough", (MORE, ALL), "system tests with gigabytes, or many seconds of computing",
          system("build", "first,none", marks="thorough"), SYSTEM),
    Suite("needs", (MORE, ALL), "tests that programs of others are needed for",
          system("build", "first,none", marks="needs"), programs_of_others()),
    Suite("without", (MORE, ALL), "each package of this tier is missing, and no test fails", without),
    Suite("analyze", (MORE, ALL), "gcc -fanalyzer, cppcheck and clang: nothing but what is explained",
          script("tests/check-analysis.sh", weight=2), "clang cppcheck", trees=()),
    Suite("includes", (MORE, ALL), "tests and benchmarks include what they use", includes, "iwyu",
          trees=()),
    Suite("install", (MORE, ALL), "make install, README's programs with it, make uninstall",
          script("tests/check-install.sh")),
    Suite("configure", (MORE, ALL), "libraries that are missing, too old or too new",
          script("tests/check-configure.sh")),
    Suite("library", (MORE, ALL), "configure --disable-sweet: the library alone",
          script("tests/check-library.sh")),
    Suite("tls-records", (MORE, ALL), "configure --disable-tls-records: OpenSSL makes all records",
          script("tests/check-tls-records.sh"), "curl"),

    Suite("kernel", (ALL,), "the kernel's module in guests of QEMU, Linux 6.1 and 6.12", kernels,
          QEMU, deadline=1500),
    Suite("distcheck", (ALL,), "the release, built and tested on its own",
          script("tests/check-dist.sh", rank=90), deadline=1500),
    Suite("packages", (ALL,), "Debian's packages of the release, built, installed, used, upgraded, purged",
          script("build-aux/deb", weight=2, rank=95), "debootstrap git", trees=(), deadline=5400),
    Suite("container", (ALL,), "the image of a container, and php-fpm beside it",
          script("tests/check-container.sh"),
          "aardvark-dns curl debootstrap fuse-overlayfs git netavark podman podman-compose runc",
          deadline=1500, trees=()),
    Suite("valgrind-system", (ALL,), "each system test under Valgrind, by epoll",
          system("build", "epoll,none", "--thin", marks=NOT_BENCH, factor=5, weight=VALGRIND_WEIGHT,
                 SWEET_UNDER=VALGRIND),
          f"{SYSTEM} valgrind", deadline=1500),
    Suite("valgrind", (ALL,), "units under Valgrind", valgrind_units, f"{UNITS} valgrind", deadline=400),
    Suite("large", (ALL,), "bodies of 10 GB from and to an HTTP server behind", large, SYSTEM,
          deadline=900),
    Suite("epoll", (ALL,), "the whole server by epoll",
          system("build", "epoll"), SYSTEM),
    Suite("asan-uring", (ALL,), "the whole server with the sanitizers, by io_uring",
          system("build-asan", "uring", marks=NOT_BENCH, factor=2.5), SYSTEM,
          trees=("build-asan",)),
    Suite("asan-no-uring", (ALL,), "the same where io_uring is refused",
          system("build-asan", "no-uring", marks=NOT_BENCH, factor=2.5), SYSTEM,
          trees=("build-asan",)),
    Suite("tsan-epoll", (ALL,), "the whole server with the thread sanitizer, by epoll",
          system("build-tsan", "epoll,none", marks=NOT_BENCH, choose="not takes_io_uring", factor=3),
          SYSTEM, trees=("build-tsan",)),
    Suite("fuzz", (ALL,), "each fuzz target for a third of a minute, by the same numbers for chance",
          make("fuzz", spare=1, FUZZ_SECONDS="fuzz", FUZZ_BESIDE="beside",
               FUZZ_OPTIONS="-seed=1 -reload=0"),
          "clang libclang-rt-dev", deadline=3000),
    Suite("tsan-no-uring", (ALL,), "the same where io_uring is refused",
          system("build-tsan", "no-uring", marks=NOT_BENCH, factor=3), SYSTEM,
          trees=("build-tsan",)),
    Suite("without-any", (ALL,), "the whole server where all these packages are missing", without_any),
    Suite("tls-proofs", (ALL,), "TLS as testssl.sh, sslyze and tlsfuzzer see it", tls_proofs,
          "nginx-light openssl python3-venv testssl.sh", deadline=900),
    Suite("bench", (ALL,), "whether each experiment runs, not how fast",
          script("tests/check-bench.sh"), PEERS, deadline=2000),
    Suite("torture", (ALL,), "faults, hostile input and load, for four minutes",
          make("torture", TORTURE_SECONDS="torture"), deadline=2000),

    Suite("bare-trixie", (ALL,), "README's commands and the second tier in a bare Debian 13", bare,
          "ccache debootstrap git", deadline=5400, trees=()),
    Suite("cross", (ALL,), "arm64: compiled without a warning, and its unit tests by qemu-user",
          script("tests/cross", "arm64", weight=2), "debootstrap git", deadline=3600, trees=()),

    Suite("recipes", (RECIPES,), "each application of doc/recipes/, as its users use it", recipes,
          packages_of_recipes(), deadline=900),
]
for one in SUITES:
    if one.name == "without":
        # It hides those of its tier one by one.
        one.packages = " ".join(sorted({words for suite in SUITES if MORE in suite.tiers
                                        for words in suite.packages.split()}))
