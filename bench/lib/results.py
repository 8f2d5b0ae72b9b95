# SPDX-License-Identifier: MIT
"""The results: what an experiment stores in a directory, and all experiments in turn.

A directory of results holds NAME.json, NAME.csv and NAME-*.svg; RESULTS.md is beside it. "all"
runs each experiment in a process of its own, which has limited time and cleans up after itself;
a failure is reported, and the others continue.
"""

import os
import subprocess
import sys
import time

from . import plot, process, report, sanity, weave
from .process import Failure
from .servers import find_missing

LIMIT_SECONDS, LIMIT_QUICK_SECONDS = 5400, 600
END_SECONDS = 30  # time to clean up


def remove(directory, name):
    """Removes the files of an earlier measurement, so that they are not taken for this one's."""
    for file in os.listdir(directory):
        if file in (f"{name}.json", f"{name}.csv") or (file.startswith(f"{name}-")
                                                       and file.endswith(".svg")):
            os.unlink(os.path.join(directory, file))


def write(directory, experiment, content):
    """Stores the measurement, and draws it."""
    os.makedirs(directory, exist_ok=True)
    remove(directory, experiment.name)
    report.write_csv(os.path.join(directory, experiment.name + ".csv"), content)
    report.write_json(os.path.join(directory, experiment.name + ".json"), content)
    draw(directory, experiment, content)


def draw(directory, experiment, content):
    """Makes the plots, which the JSON then names."""
    content["plots"] = plot.draw(directory, experiment.name, experiment.plots, content["cases"])
    report.write_json(os.path.join(directory, experiment.name + ".json"), content)


def weave_results(options, source, experiments):
    """Command "results": makes plots and RESULTS.md again from the stored figures."""
    try:
        os.makedirs(options.results, exist_ok=True)
        for name, experiment in experiments.items():
            content = weave.load(options.results, name)
            if content:
                if experiment.derive(content):
                    report.write_csv(os.path.join(options.results, name + ".csv"), content)
                draw(options.results, experiment, content)
        target = os.path.join(os.path.dirname(options.results), "RESULTS.md")
        weave.weave(source, options.results, list(experiments),
                    {name: one.summary for name, one in experiments.items()}, target)
    except (Failure, OSError) as error:
        print(f"\nbench: {error}", file=sys.stderr)
        return 1
    print(f"woven: {target}", flush=True)
    return 0


def arguments(options, source, name):
    argv = [sys.executable, os.path.join(source, "bench"), name]
    if options.quick:
        argv.append("--quick")
    argv += ["--build", options.build, "--results", options.results]
    for option, values in options.given.items():
        argv += [f"--{option}", values]
    return argv


def measure_one(options, source, name):
    """Returns why an experiment failed, or None."""
    limit = LIMIT_QUICK_SECONDS if options.quick else LIMIT_SECONDS
    popen = subprocess.Popen(arguments(options, source, name), stdin=subprocess.DEVNULL)
    try:
        status = popen.wait(limit)
    except subprocess.TimeoutExpired:
        return f"did not end in {limit} s"
    finally:
        if popen.poll() is None:
            process.end([popen], END_SECONDS)
            process.end_all()
    return None if status == 0 else f"status {status}"


def measure_all(options, source, experiments):
    """Command "all"."""
    packages, peers = find_missing()
    if packages:
        print("bench: Debian packages are missing; as root:\n"
              "apt-get install --no-install-recommends " + " ".join(packages + peers),
              file=sys.stderr)
        return 1
    if peers:
        print("bench: peers without figures, because these packages are not installed: "
              + " ".join(peers), flush=True)
    os.makedirs(options.results, exist_ok=True)
    failed = {}
    for number, name in enumerate(experiments, 1):
        print(f"\n== {name} ({number} of {len(experiments)}) ==", flush=True)
        remove(options.results, name)
        start = time.monotonic()
        reason = measure_one(options, source, name)
        print(f"\n{name}: {time.monotonic() - start:.0f} s"
              + (f", FAILED: {reason}" if reason else ""), flush=True)
        if reason:
            failed[name] = reason
    status = weave_results(options, source, experiments)
    for name, reason in failed.items():
        print(f"bench: {name} failed: {reason}", file=sys.stderr)
    return 1 if failed or status else 0


COMMANDS = {"all": measure_all, "results": weave_results, "sanity": sanity.check}
