# SPDX-License-Identifier: MIT
"""Plots of an experiment's cases as SVG, by gnuplot.

The first parameter that varies is the x axis, a row is a line, and each value
of the other parameters gets a plot of its own.  Where x is a word there are
columns instead of lines.
"""

import os
import subprocess

from . import report
from .process import Failure
from .servers import find_program

SECONDS_MAX = 30
# Each line has its own point symbol, to distinguish it without colours.
COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44", "#e08e1b", "#6a4c93", "#5c5c5c", "#00a6a6", "#a0522d",
           "#b5179e", "#7a9e00", "#264653", "#ff6b6b", "#8d99ae")
AXES = {"size": "size of the body", "set_mb": "data set, MB", "connections": "connections",
        "clients": "clients", "rate": "asked for a second"}


class Plot:
    """A plot: a field of the runs over a parameter.

    x: the parameter, or None for the first that varies; log: x, y, xy or "".
    log None: x, and with wide also y, if it spans more than a factor of 20.
    where: returns whether to draw the case that has these parameters.
    name: of the file, if not that of the field.
    """

    def __init__(self, field, label, title, x=None, log=None, wide=False, where=None, name=None):
        self.field, self.label, self.title, self.x, self.log = field, label, title, x, log
        self.wide, self.where, self.name = wide, where or (lambda parameters: True), name or field


USUAL = (Plot("requests_per_s", "requests/s", "requests/s"),
         Plot("cpu_us_per_request", "server CPU, us/request", "CPU time of the server per request",
              wide=True))


def varying(cases):
    """Returns the parameters with more than one value, in their order."""
    names = list(dict.fromkeys(name for case in cases for name in case["parameters"]))
    return [name for name in names
            if len({case["parameters"].get(name) for case in cases}) > 1]


def quoted(text):
    """Quotes a text for gnuplot, without special characters."""
    return "'" + str(text).replace("'", "''") + "'"


def axis(cases, x):
    names = varying(cases) or [name for case in cases[:1] for name in case["parameters"]]
    return x or (names[0] if names else None)


def panels(cases, x):
    """Returns {values of the other parameters, as text: cases}."""
    others = [name for name in varying(cases) if name != x]
    result = {}
    for case in cases:
        text = ", ".join(report.parameter_name(name, case["parameters"][name])
                         for name in others if name in case["parameters"])
        result.setdefault(text, []).append(case)
    return result


def points(cases, x, row, field):
    """Returns [(x, median, minimum, maximum)] of a row."""
    found = []
    for case in cases:
        triple = report.summary(case["runs"][row]).get(field) if row in case["runs"] else None
        if triple:
            found.append((case["parameters"].get(x), *triple))
    return found


def spans(values):
    return 0 < 20 * min(values) < max(values)


def ticks(values, x):
    """Converts bytes to KB and MB."""
    if x != "size" or len(values) > 12:
        return ""
    return "set xtics (" + ", ".join(f"{quoted(report.size_name(value))} {value}"
                                     for value in values) + ")\n"


def script(plot, cases, title, path):
    """Returns the commands of gnuplot for one file, or None if there is nothing to draw."""
    x = axis(cases, plot.x)
    rows = list(dict.fromkeys(row for case in cases for row in case["runs"]))
    lines = {row: points(cases, x, row, plot.field) for row in rows}
    lines = {row: line for row, line in lines.items() if line}
    values = list(dict.fromkeys(point[0] for line in lines.values() for point in line))
    if not lines:
        return None
    numbers = len(values) > 1 and all(isinstance(value, (int, float)) for value in values)
    log = plot.log
    if log is None:
        medians = [point[1] for line in lines.values() for point in line]
        log = "x" if numbers and spans(values) else ""
        log += "y" if plot.wide and spans(medians) else ""
    if not numbers:
        log = log.replace("x", "")
    text = ("set terminal svg size 760,440 dynamic enhanced font 'sans-serif,13'"
            " background rgb 'white'\n"
            "set encoding utf8\n"
            f"set output {quoted(path)}\n"
            f"set title {quoted(title)} noenhanced\n"
            f"set ylabel {quoted(plot.label)} noenhanced\n"
            "set key outside right top noenhanced\n"
            "set border 3 lc rgb '#808080'\nset tics nomirror\n"
            "set grid ytics lc rgb '#e0e0e0' lt 1\n"
            "set format y '%.10g'\n")
    text += f"set logscale {log}\n" if log else ""
    text += "" if "y" in log else "set yrange [0:*]\n"
    return text + (curves(lines, values, x, "x" in log) if numbers else columns(lines, values, x))


def data(name, lines):
    text = "".join(" ".join(map(str, line)) + "\n" for line in lines)
    return f"${name} << EOD\n{text}EOD\n"


def room(values, log):
    """Returns a range with a margin at both ends."""
    least, most = min(values), max(values)
    if log:
        return f"[{least / 1.1}:{most * 1.1}]"
    return f"[{least - 0.03 * (most - least)}:{most + 0.03 * (most - least)}]"


def curves(lines, values, x, log):
    text = f"set xrange {room(values, log)}\n"
    text += f"set xlabel {quoted(AXES.get(x, x))} noenhanced\n"
    text += ticks(sorted(values), x)
    parts = []
    for i, (row, line) in enumerate(lines.items()):
        text += data(f"row{i}", sorted(line))
        parts.append(f"$row{i} using 1:2:3:4 with yerrorlines lw 1.6 pt {i + 1} ps 0.6"
                     f" lc rgb '{COLOURS[i % len(COLOURS)]}' title {quoted(row)}")
    return text + "plot " + ", ".join(parts) + "\n"


def columns(lines, values, x):
    """One group for each value of x, one column in it for each row."""
    names = [report.parameter_name(x, value) if x else "" for value in values]
    width = 0.8 / len(lines)
    text = f"set style fill solid 0.85 noborder\nset boxwidth {width * 0.92}\n"
    text += f"set xrange [-0.5:{len(values) - 0.5}]\n"
    text += "set xtics (" + ", ".join(f"{quoted(name)} {i}" for i, name in enumerate(names)) + ")\n"
    text += "set xtics noenhanced\n"
    parts = []
    for i, (row, line) in enumerate(lines.items()):
        shift = (i - (len(lines) - 1) / 2) * width
        text += data(f"row{i}", [(values.index(at) + shift, *rest) for at, *rest in line])
        parts.append(f"$row{i} using 1:2 with boxes lc rgb '{COLOURS[i % len(COLOURS)]}'"
                     f" title {quoted(row)}")
        parts.append(f"$row{i} using 1:3:(0):($4-$3) with vectors nohead lc rgb '#303030' notitle")
    return text + "plot " + ", ".join(parts) + "\n"


def file_name(experiment, plot, panel):
    words = "".join(c if c.isalnum() else "-" for c in f"{plot.name} {panel}".strip())
    return f"{experiment}-{'-'.join(word for word in words.split('-') if word)}.svg"


def lacking(cases):
    """What a title says of the rows that have no line."""
    rows = {}
    for row, why in dict.fromkeys(one for case in cases for one in report.absent_rows(case)):
        rows.setdefault(why, []).append(row)
    return "".join(f"; {why}: {', '.join(names)}" for why, names in rows.items())


def draw(directory, experiment, plots, cases):
    """Draws all of an experiment's plots; returns [(file name, title)]."""
    gnuplot, drawn = find_program("gnuplot"), []
    for plot in plots:
        mine = [case for case in cases if plot.where(case["parameters"])]
        for panel, some in panels(mine, axis(mine, plot.x)).items():
            title = f"{experiment}: {plot.title}" + (f" ({panel})" if panel else "") + lacking(some)
            name = file_name(experiment, plot, panel)
            commands = script(plot, some, title, os.path.join(directory, name))
            if not commands:
                continue
            done = subprocess.run([gnuplot], input=commands.encode(), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=SECONDS_MAX, check=False)
            if done.returncode:
                raise Failure(f"gnuplot: {name}:\n{done.stdout.decode(errors='replace')}")
            drawn.append((name, title))
    return drawn
