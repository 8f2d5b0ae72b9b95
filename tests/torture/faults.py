# SPDX-License-Identifier: MIT
"""Faults: calls of a server fail at random, one by one and in rows, while it does all
kinds of work, and while it starts; its clocks jump.  After each, all requests must
get the right response.  And all calls that the library makes in a program of its
own, in their order."""

import fault_library
import fault_walk
from fault_plan import name_of

SHARE = 0.1
STARTS = 0.25  # of the server's time
LIBRARY = 0.4  # of the time; less if that is enough for all of its faults
PASSES = 7  # over them, each for another part
JUMPS = 0.05  # of the faults, beside them
YEAR = 365 * 86400 * 10**9  # nanoseconds


def random_fault(torture, kinds):
    """(kind, number, error, times); kinds maps each kind to its number of calls."""
    kind = torture.random.choice(sorted(kinds))
    calls, errors = kinds[kind]
    return (kind, torture.random.randrange(calls), torture.random.choice(errors),
            torture.random.choice((1, 1, 1, 2, 5, 20)))


def jump(torture, walk):
    """A clock that is corrected, within 30 years of now; or that of a machine that was
    suspended."""
    if torture.random.random() < 0.5:
        walk.jump("monotonic", int(torture.random.uniform(0, 1) ** 8 * YEAR))
    else:
        walk.jump("realtime", int(torture.random.uniform(-30, 30) * YEAR) - walk.plan["realtime"])


def descriptors_rest(torture, walk, most):
    """A fault may leak no descriptor; connections to programs are kept, so a few vary."""
    now = walk.descriptors()
    if now > most:
        raise torture.Wrong(f"{now} descriptors after {walk.counts['faults']} faults")


def walk_server(torture, walk, until):
    while torture.left() > until:
        walk.start()
        calls = walk.calls_of_a_round()
        kinds = {kind: (count, walk.plan.kinds[kind][1]) for kind, count in calls.items()}
        most = walk.descriptors() + 100
        # A server is kept for many faults, whose effects may accumulate.
        for _ in range(200):
            if torture.left() <= until:
                break
            walk.fail(*random_fault(torture, kinds))
            if torture.random.random() < JUMPS:
                jump(torture, walk)
        descriptors_rest(torture, walk, most)
        walk.stop()


def walk_starts(torture, walk):
    """Calls of the first start, which the plan counts until the server is ready."""
    walk.start()
    calls = {kind: (count, walk.plan.kinds[kind][1])
             for kind, count in walk.plan.all_calls().items() if count}
    walk.stop()
    while torture.left() > 0:
        kind, number, error, _ = random_fault(torture, calls)
        try:
            walk.start_with(kind, number, error)
        except fault_walk.Wrong as wrong:
            raise torture.Wrong(f"{kind} {number} {name_of(error)}: {wrong}") from wrong


def walk_library(torture, until):
    for first in torture.random.sample(range(PASSES), PASSES):
        for number, scenario in enumerate(fault_library.SCENARIOS):
            # The last ones have their share of the remaining time too.
            seconds = (torture.left() - until) / (len(fault_library.SCENARIOS) - number)
            if seconds <= 0:
                return
            rounds, _, faults = fault_library.walk(torture.scratch, scenario, "-s", str(PASSES),
                                                   "-f", str(first), "-t", str(seconds))
            torture.count("library rounds", rounds)
            torture.count("library faults", faults)


def run(torture):
    try:
        walk_library(torture, torture.seconds * (1 - LIBRARY))
    except fault_library.Wrong as wrong:
        raise torture.Wrong(f"library: {wrong}") from wrong
    server = torture.left()
    for number, kind in enumerate(("uring", "epoll")):
        folder = torture.scratch / kind
        folder.mkdir()
        walk = fault_walk.Walk(folder, kind, ())
        try:
            walk_server(torture, walk, server * (1 - (1 - STARTS) * (number + 1) / 2))
            if number:
                walk_starts(torture, walk)
        except fault_walk.Wrong as wrong:
            raise torture.Wrong(f"{kind}: {wrong}") from wrong
        finally:
            walk.close()
            for name, count in walk.counts.items():
                torture.count(name, count)
