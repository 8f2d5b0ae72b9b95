# SPDX-License-Identifier: MIT
"""The targets of several experiments for SWEET beside its peers: verdicts, as (text, value,
target, reached). reached None: it is at the limit, whatever the target.
"""

import statistics

PEERS = ("nginx", "lighttpd", "h2o", "apache")
NULLS = ("null", "null-epoll", "null-tls", "null-h2")
CPU = "cpu_us_per_request"


def median(case, row, field=CPU):
    return statistics.median(run[field] for run in case["runs"][row])


def sweet_of(case):
    """Returns the first row that is SWEET, as on the command line."""
    return next(row for row in case["runs"] if row.startswith("sweet"))


def least(case, names, field=CPU):
    """Returns the existing row with the lowest median, or None."""
    return min((name for name in names if name in case["runs"]),
               key=lambda name: median(case, name, field), default=None)


def most(case, names, field):
    return max((name for name in names if name in case["runs"]),
               key=lambda name: median(case, name, field), default=None)


def uncompared(case, names, text, bar):
    """The verdict that says why nothing was compared: none of these peers is installed."""
    why = [case["absent"][name] for name in names if name in case.get("absent", {})]
    return [(text, None, bar, why[0])] if why else []


def at_least(text, value, bar):
    return text, value, bar, value >= bar


def best_peer(case, bar, words, peers=PEERS, near=0):
    """CPU time of the best peer divided by SWEET's; if that misses, that of the null server.

    near: SWEET also reaches the target if it uses at most that many times the null server's.
    """
    best, null = least(case, peers), least(case, NULLS)
    if not best:
        return uncompared(case, peers, f"CPU time, best peer : SWEET, {words}", bar)
    text = f"CPU time, best peer ({best}) : %s, {words}"
    mine = at_least(text % "SWEET", median(case, best) / median(case, sweet_of(case)), bar)
    limit = [(text % "null", median(case, best) / median(case, null), bar, None)] if null else []
    times = median(case, sweet_of(case)) / median(case, null) if null else None
    if not mine[3] and null and times <= near:
        return [(f"CPU time, SWEET : null, {words}", times, f"at most {near:g}", True), *limit]
    return [mine, *(limit if not mine[3] else [])]


def both_ends(run):
    return run[CPU] + run["client_us_per_request"]


def best_peer_both_ends(case, bar, words):
    """As best_peer(), for the CPU time of server and client together, then of the server
    only."""
    names = [name for name in PEERS if name in case["runs"]]
    if not names:
        return uncompared(case, PEERS, f"CPU time of both ends, best peer : SWEET, {words}", bar)
    times = {name: statistics.median(map(both_ends, case["runs"][name]))
             for name in (*names, sweet_of(case))}
    best, alone = min(names, key=times.get), least(case, PEERS)
    return [at_least(f"CPU time of both ends, best peer ({best}) : SWEET, {words}",
                     times[best] / times[sweet_of(case)], bar),
            at_least(f"CPU time of the server alone, best peer ({alone}) : SWEET, {words}",
                     median(case, alone) / median(case, sweet_of(case)), bar)]


def null_share(case, bar, words):
    """CPU time of the null server divided by SWEET's: how near SWEET is to the limit."""
    null = least(case, NULLS)
    if not null:
        return []
    return [at_least(f"CPU time, null : SWEET, {words}",
                     median(case, null) / median(case, sweet_of(case)), bar)]


def other_row(case, row, name, bar, words):
    """CPU time of one row divided by SWEET's."""
    text = f"CPU time, {name} : SWEET, {words}"
    if row not in case["runs"]:
        return uncompared(case, [row], text, bar)
    return [at_least(text, median(case, row) / median(case, sweet_of(case)), bar)]
