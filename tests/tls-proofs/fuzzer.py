#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The proof tlsfuzzer: scripts of tlsfuzzer against SWEET and against nginx, with the same
certificates, ciphers and groups; fails if a conversation passes with nginx, but not with SWEET.

NABC_TLSFUZZER names a clone of https://github.com/tlsfuzzer/tlsfuzzer; fuzzer.txt lists the
scripts.  Each script draws the same numbers for both servers.  The scripts have time limits of
their own, which a busy machine may exceed, therefore a conversation is wrong if it fails twice.
Arguments: names of scripts, instead of all.  Exit status: 0 good, 1 not, 77 without the programs.
"""

import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import proof

# The version that the tests of tlsfuzzer require.
REQUIREMENT = "tlslite-ng==0.9.0b2"
LIMIT = 60  # seconds of a script
SEEDED = """
import os, random, runpy, sys
random.seed(1)
os.urandom = random._urandom = random.Random(2).randbytes
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
BROKEN = "the script itself"  # of a script that failed without a result


def listed(path):
    """Returns ([(script, arguments)], {(script, conversation): reason}), of fuzzer.txt."""
    scripts, excused = [], {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if line.startswith("  "):
            conversation, colon, reason = line.strip().partition(" -- ")
            assert colon and scripts, f"{path}:{number}: not CONVERSATION -- REASON"
            excused[scripts[-1][0], conversation] = reason
        else:
            name, *arguments = shlex.split(line)
            scripts.append((name, arguments))
    return scripts, excused


class Outcome:
    """What a script has printed: how many conversations passed, and the names of the others."""

    def __init__(self, text, status, seconds):
        self.text, self.seconds = text, seconds
        numbers = dict(re.findall(r"^(TOTAL|PASS|XFAIL|FAIL|XPASS): (\d+)$", text, re.M))
        self.passed = int(numbers.get("PASS", 0))
        found = text.rpartition("\nFAILED:\n")[2] if "\nFAILED:\n" in text else ""
        self.failed = {name.strip()[1:-1] for name in found.splitlines() if name.startswith("\t")}
        if status and not self.failed:
            self.failed = {BROKEN}

    def total(self):
        return self.passed + len(self.failed)


def run(python, fuzzer, port, name, arguments):
    begun = time.monotonic()
    command = [python, "-c", SEEDED, f"scripts/{name}.py", "-h", "localhost", "-p", str(port),
               *arguments]
    environment = {**os.environ, "PYTHONPATH": str(fuzzer), "PYTHONHASHSEED": "1"}
    try:
        done = subprocess.run(command, cwd=fuzzer, env=environment, timeout=LIMIT, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, errors="replace")
        text, status = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        text, status = (late.stdout or b"").decode(errors="replace"), 124
    return Outcome(text, status, time.monotonic() - begun)


def wrong_ones(name, pair, excused):
    """Returns the conversations that only nginx passes."""
    ours, theirs = pair
    if BROKEN in theirs.failed:
        return set()
    return {one for one in ours.failed - theirs.failed if (name, one) not in excused}


def main(names):
    place = os.environ.get("NABC_TLSFUZZER")
    if not place:
        proof.skip("NABC_TLSFUZZER names no clone of tlsfuzzer")
    fuzzer = pathlib.Path(place).resolve()
    proof.program("nginx")
    python = proof.environment("tlslite-ng", REQUIREMENT)
    scripts, excused = listed(proof.HERE / "fuzzer.txt")
    scripts = [row for row in scripts if not names or row[0] in names]
    assert scripts, f"fuzzer.txt has none of {names}"
    missing = [name for name, _ in scripts if not (fuzzer / "scripts" / f"{name}.py").is_file()]
    assert not missing, f"{fuzzer} lacks {missing}"
    bad, sums = [], [0, 0, 0]
    print(f"{'script':60} {'SWEET':>9} {'nginx':>9} seconds")
    with proof.place() as folder, proof.sweet(folder) as sweet, proof.nginx(folder) as nginx, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, arguments in scripts:
            def both():
                return list(pool.map(lambda port: run(python, fuzzer, port, name, arguments),
                                     (sweet, nginx)))

            pair = both()
            wrong = wrong_ones(name, pair, excused)
            if wrong:
                again = both()
                wrong &= wrong_ones(name, again, excused)
            ours, theirs = pair
            print(f"{name:60} {ours.passed:4}/{ours.total():<4} {theirs.passed:4}/"
                  f"{theirs.total():<4} {ours.seconds:.1f} {theirs.seconds:.1f}"
                  f"{' WRONG' if wrong else ''}", flush=True)
            for one in sorted(ours.failed ^ theirs.failed):
                who = "SWEET" if one in ours.failed else "nginx"
                print(f"    only {who} fails: {one}: {excused.get((name, one), 'not listed')}")
            if wrong:
                print("    " + again[0].text[-3000:].replace("\n", "\n    "))
                bad.append(name)
            sums = [sums[0] + ours.passed, sums[1] + theirs.passed, sums[2] + theirs.total()]
    print(f"tlsfuzzer: {len(scripts)} scripts, {sums[2]} conversations: SWEET passes {sums[0]}, "
          f"nginx {sums[1]}; worse than nginx in {len(bad)} scripts: {', '.join(bad) or 'none'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
