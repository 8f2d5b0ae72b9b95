# SPDX-License-Identifier: MIT
"""Runs the suites of a tier with one pool of jobs, and reports the results.  Users
call ./run-tests, which installs the packages first.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time

import estimates
import report
import suites
from pool import Pool

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
ROOM = 2 << 30  # free bytes that the tests require in the folder of temporary files
PROGRESS = 60  # seconds between two progress lines


ABOUT = """\
Builds with warnings as errors and runs the tests, as many beside each other
as there are processors for."""
MORE = """\
Logs, and the summary as summary.txt, are in build/suites/.  Exit status: 0; 1
if anything failed; with NABC_NO_SKIP=1 in the environment also if anything was
skipped that tests/allowed-skips.txt does not list.  TMPDIR chooses the folder of
temporary files, CC=clang another compiler.  Missing Debian packages are installed if you are root."""


class Refused(Exception):
    """The tests cannot run here; the text says what to do."""


def parse(arguments):
    listing = "\n".join(f"  {suite.name:16} {suite.text} ({', '.join(suite.tiers)})"
                        for suite in suites.SUITES)
    parser = argparse.ArgumentParser(
        prog="run-tests", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=ABOUT, epilog=f"suites (and their tiers):\n{listing}\n\n{MORE}")
    tier = parser.add_mutually_exclusive_group()
    for name, (text, _) in suites.TIERS.items():
        tier.add_argument(f"--{name}", dest="tier", action="store_const", const=name, help=text)
    parser.add_argument("--only", metavar="SUITE[,SUITE...]", help="these suites, of whatever tier")
    parser.add_argument("--from", dest="first", metavar="SUITE",
                        help="the tier from this suite on; the summary has the others as they were")
    parser.add_argument("--fuzz-seconds", type=int, default=20, help="for each fuzz target (20)")
    parser.add_argument("--torture-seconds", type=int, default=240, help="240")
    parser.add_argument("--write-times", action="store_true",
                        help="write tests/times.txt anew from what this run took")
    parser.add_argument("--packages", action="store_true",
                        help="only print the Debian packages that this would want")
    given = parser.parse_args(arguments)
    given.tier = given.tier or suites.QUICK
    return given


def known(name):
    for suite in suites.SUITES:
        if suite.name == name:
            return suite
    raise Refused(f"{name} is no suite; ./run-tests --help lists them")


def chosen(given):
    """Returns (the suites to run, those of the summary)."""
    if given.only:
        wanted = [known(name) for name in given.only.split(",")]
        return wanted, wanted
    tier = [suite for suite in suites.SUITES if given.tier in suite.tiers]
    if not given.first:
        return tier, tier
    if known(given.first) not in tier:
        raise Refused(f"{given.first} is not in this tier; ./run-tests --help says in which it is")
    return tier[tier.index(known(given.first)):], tier


def limit(given, to_run):
    """Returns the seconds after which the tests have failed: those of the tier, or of the longest
    tier that has one of the chosen suites."""
    tiers = {tier for suite in to_run for tier in suite.tiers} if given.only else {given.tier}
    return max(suites.TIERS[tier][1] for tier in tiers)


def check_room(folder):
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(1 << 20))
            file.flush()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise Refused(f"{folder} cannot be written to: {error.strerror} "
                      "(TMPDIR=DIR chooses another folder for temporary files)") from None
    if free < ROOM:
        raise Refused(f"{folder} has {free >> 20} MiB left, and the tests want {ROOM >> 20} MiB "
                      "(TMPDIR=DIR chooses another folder for temporary files)")


class Run:
    """One call of ./run-tests."""

    def __init__(self, given, scratch):
        self.given = given
        self.strict = bool(os.environ.get("NABC_NO_SKIP"))
        self.to_run, self.to_show = chosen(given)
        self.logs = os.path.join(TOP, "build", "suites")
        os.makedirs(self.logs, exist_ok=True)
        self.scratch = scratch
        self.times = estimates.Times(os.path.join(TOP, "tests", "times.txt"))
        self.allowed = report.Allowed(os.path.join(TOP, "tests", "allowed-skips.txt"))
        self.began = time.monotonic()
        self.processors = len(os.sched_getaffinity(0))
        self.pool = Pool(self.processors, self.ended, self.tick, PROGRESS)
        self.results = {}
        self.left = {}  # jobs of each suite that have not ended

    def say(self, text=""):
        print(text, flush=True)

    def clock(self):
        seconds = int(time.monotonic() - self.began)
        return f"[{seconds // 60:3}:{seconds % 60:02}]"

    def plan(self):
        context = suites.Context(TOP, self.logs, self.times, self.processors, {
            "fuzz": self.given.fuzz_seconds, "torture": self.given.torture_seconds})
        jobs = list(suites.builds(context, self.to_run))
        for number, suite in enumerate(self.to_run):
            for job in suite.jobs(context, suite):
                job.rank += 10 * (len(self.to_run) - number)
                jobs.append(job)
        for number, job in enumerate(jobs):
            self.prepare(job, number)
            self.left[job.suite] = self.left.get(job.suite, 0) + 1
            self.pool.add(job)
        for suite in self.left:
            report.forget(self.logs, suite)
        self.say(f"run-tests: {len(jobs)} jobs of {len(self.left)} suites on {self.processors} "
                 f"processors; logs are in {os.path.relpath(self.logs)}/")

    def prepare(self, job, number):
        """Prepares its files: nothing of an earlier run, and a folder of its own."""
        for stale in filter(os.path.exists, filter(None, (job.log, job.results))):
            os.remove(stale)
        if job.results:
            # Some jobs run as another user.
            open(job.results, "w").close()
            os.chmod(job.results, 0o666)
        # Short, because it contains sockets, whose paths must be short.
        job.own(os.path.join(self.scratch, str(number)))

    def ended(self, job):
        """A job has ended."""
        result = self.results.setdefault(job.suite, report.Result(job.suite))
        now = time.monotonic()
        result.began = min(result.began, now - job.seconds)
        result.ended = now
        failures = len(result.failed)
        result.add(job, self.allowed)
        if len(result.failed) > failures:
            self.say(f"\n{self.clock()} FAILED {job.name}: {report.why(job)}")
            self.say(report.tail(job.log))
            self.say(f"{self.clock()} ^ {job.name}; all of it: {os.path.relpath(job.log)}\n")
        else:
            shutil.rmtree(job.scratch, ignore_errors=True)
        self.left[job.suite] -= 1
        if self.left[job.suite] == 0:
            verdict = "" if result.good(self.strict) else "FAILED "
            self.say(f"{self.clock()} {verdict}{result.line()}")
            report.save(self.logs, result)

    def tick(self, running, waiting):
        names = ", ".join(sorted(job.name for job in running))
        self.say(f"{self.clock()} {waiting} jobs wait; running: {names}")

    def run(self):
        self.plan()
        self.pool.run(self.began + limit(self.given, self.to_run))
        return self.finish()

    def earlier(self):
        """Lines of suites from an earlier run."""
        for suite in self.to_show:
            if suite not in self.to_run:
                row = report.load(self.logs, suite.name)
                yield (f"{row['line']} (earlier)" if row else f"{suite.name:16} has not run"), \
                    not row or row["failures"] or self.strict and row["unlisted"]

    def finish(self):
        results = list(self.results.values())
        seconds = time.monotonic() - self.began
        lines = [" ".join(["== ./run-tests", *sys.argv[1:], "=="])]
        good = all(result.good(self.strict) for result in results)
        for line, bad in self.earlier():
            lines.append(("FAILED " if bad else "") + line)
            good = good and not bad
        for result in results:
            lines.append(("" if result.good(self.strict) else "FAILED ") + result.line())
            lines += [f"    {name}: {why} (see {os.path.relpath(log)})"
                      for name, log, why in result.failed]
            if self.strict:
                lines += [f"    skipped, which tests/allowed-skips.txt does not list: {test.name}: "
                          f"{test.reason}" for test in result.unlisted]
        for title, rows in (("skipped", report.skips(results)),
                            ("not tested, by area", report.areas(results)),
                            ("the slowest", report.slowest(results)),
                            ("seconds of tests, added up", list(report.growth(results, self.times)))):
            if rows:
                lines += [f"{title}:", *(f"  {row}" for row in rows)]
        lines.append(f"{int(seconds) // 60} min {int(seconds) % 60} s; "
                     f"{100 * self.pool.busy / max(seconds, 1) / self.processors:.0f} % of "
                     f"{self.processors} processors were given out")
        # Again, because who keeps only the end of a long output needs the names.
        lines += [f"FAILED {name}" for result in results for name, _, _ in result.failed]
        counts = [sum(result.count(what) for result in results)
                  for what in ("passed", "failed", "skipped")]
        unlisted = sum(len(result.unlisted) for result in results) if self.strict else 0
        lines.append("tests: {} passed, {} failed, {} skipped".format(
            counts[0], counts[1] + unlisted, counts[2] - unlisted))
        with open(os.path.join(self.logs, "summary.txt"), "w") as file:
            file.write("\n".join(lines) + "\n")
        estimates.remember(os.path.join(self.logs, "history.tsv"), [
            (result.name, len(result.tests), result.seconds) for result in results])
        if self.given.write_times:
            self.write_times(results)
        self.say("\n" + "\n".join(lines))
        return 0 if good else 1

    def write_times(self, results):
        for result in results:
            if result.name != "build":
                self.times.suites[result.name] = (len(result.tests), result.seconds)
        # The second one runs tests that the first one may skip.
        self.times.set_files(test for result in results if result.name in ("system", "needs")
                             for test in result.tests)
        self.times.write()


def main():
    given = parse(sys.argv[1:])
    # On SIGTERM, it stops its jobs as on an interrupt.
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(1))
    try:
        if given.packages:
            wanted = {name for suite in chosen(given)[0] for name in suite.packages.split()}
            print(" ".join(sorted(wanted)))
            return 0
        temporary = os.environ.get("TMPDIR", "/tmp")
        check_room(temporary)
        scratch = tempfile.mkdtemp(prefix="nabc-", dir=temporary)
        os.chmod(scratch, 0o755)
        try:
            return Run(given, scratch).run()
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except Refused as error:
        print(f"run-tests: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nrun-tests: interrupted; --from SUITE goes on", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
