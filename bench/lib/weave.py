# SPDX-License-Identifier: MIT
"""Weaves RESULTS.md: the text of sections/NAME.md with what results/NAME.json found.

A section is Markdown in which a line of its own may be

  {{command}}  the command that measured, when, where and with which servers
  {{table}}    what was measured
  {{plot}}     the plots
  {{verdict}}  what was to be reached, and whether it was

and in whose text may stand, with parameters as name=value where they are needed,

  {{figure ROW FIELD size=1024}}       the median of a field; a row's blanks are "-" here
  {{ratio ROW ROW FIELD size=1024}}    of the medians: the first by the second
"""

import json
import os
import re

from . import report
from .process import Failure
from .servers import NO_GROUP, NOT_INSTALLED

class Absent(Exception):
    """A figure of a row that has none; what stands in its place."""


TITLE = """\
<!-- SPDX-License-Identifier: MIT -->
<!-- Made by "bench/bench results" of bench/sections and bench/results: edit the sections. -->

# What was measured

One section for each experiment of `bench/bench --list`; each names the command that made it,
`bench/bench all` makes all. [README.md](README.md) tells how it is measured. Figures are medians of
the runs, in brackets the least and the most.
"""


def escaped(text):
    return str(text).replace("|", "\\|")


def markdown(heads, rows):
    """Makes a table; columns of figures, except the first, are right-aligned."""
    def figures(i):
        cells = [row[i] for row in rows if i and row[i]]
        return bool(cells) and all(re.match(rf"[-+(]?\d|-$|.*{NOT_INSTALLED}$|{NO_GROUP} ", cell)
                                   for cell in cells)

    lines = [heads, ["--:" if figures(i) else "---" for i in range(len(heads))], *rows]
    return "\n".join("| " + " | ".join(escaped(cell) for cell in line) + " |" for line in lines)


def cases_table(content):
    return markdown(*report.cases_table(content["cases"], content.get("columns") or report.COLUMNS))


def tables(content):
    own = "columns" in content and content["columns"] is None
    parts = [cases_table(content)] if content["cases"] and not own else []
    for table in content["tables"]:
        keep = [i for i, head in enumerate(table["heads"])
                if head or any(row[i] for row in table["rows"])]
        title = " ".join(table["title"].split())
        parts.append(title + ":\n\n" + markdown(
            [table["heads"][i] for i in keep], [[row[i] for i in keep] for row in table["rows"]]))
    return "\n\n".join(parts)


def bar_text(bar):
    return f"{bar:g}" if isinstance(bar, (int, float)) else bar


def verdict(content):
    rows = [[one["text"], report.number(one["value"]), bar_text(one["bar"]),
             report.outcome(one["reached"], "**missed**")] for one in content["verdicts"]]
    return markdown(["what is to be reached", "found", "bar", ""], rows) if rows else ""


def command(content):
    if content.get("skipped"):
        return f"Not measured: {content['skipped']}."
    facts, options = content["machine"], content["options"]
    absent = content.get("absent", [])
    servers = {one["version"] for name, one in content["servers"].items() if name not in absent}
    text = (f"`{content['command']}`, {content['date']}, {options['runs']} runs of"
            f" {options['seconds']} s; {facts['cpus']} x {facts['cpu_model']}, Linux"
            f" {facts['kernel']}, load {facts['load_average']:.2f} before.")
    if servers:
        text += " Servers: " + "; ".join(sorted(servers)) + "."
    if absent:
        text += f" Not installed: {', '.join(absent)}."
    disturbed = report.disturbances(content["cases"])
    if disturbed:
        text += f"\n\n**Disturbed**: {disturbed}."
    return text


def plots(content):
    return "\n\n".join(f"![{title}](results/{name})" for name, title in content["plots"])


def find_case(content, wanted, name):
    for case in content["cases"]:
        parameters = {key: str(value) for key, value in case["parameters"].items()}
        if wanted.items() <= parameters.items():
            return case
    raise Failure(f"sections/{name}.md: no case has {wanted or 'parameters'}")


def median(content, name, row, field, wanted):
    case = find_case(content, wanted, name)
    rows = {known.replace(" ", "-"): found for known, found in case["summary"].items()}
    found = rows.get(row, {}).get(field)
    if row in case.get("absent", {}):
        raise Absent(f"({row}: {case['absent'][row]})")
    if not found:
        raise Failure(f"sections/{name}.md: {row} has no {field}")
    return found["median"]


def inline(content, name, text):
    """Returns the figure for one {{...}} in a text."""
    kind, *words = text.split()
    wanted = dict(word.split("=", 1) for word in words if "=" in word)
    words = [word for word in words if "=" not in word]
    if kind == "figure" and len(words) == 2:
        return report.number(median(content, name, *words, wanted))
    if kind == "ratio" and len(words) == 3:
        over, under = (median(content, name, row, words[2], wanted) for row in words[:2])
        return report.number(over / under)
    raise Failure(f"sections/{name}.md: {{{{{text}}}}} is not known")


BLOCKS = {"command": command, "table": tables, "plot": plots, "verdict": verdict}


def section(text, content, name):
    """Returns a section's text with all its figures; content None: not measured."""
    def figure(match):
        if content is None:
            return "(not measured)"
        try:
            return inline(content, name, match[1])
        except Absent as absent:
            return str(absent)
        except Failure:
            if content["options"].get("quick"):
                return "(not measured)"  # --quick omits cases
            raise

    lines = []
    for line in text.splitlines():
        block = re.fullmatch(r"\{\{(\w+)\}\}", line.strip())
        if block and block[1] in BLOCKS:
            if content:
                lines.append(BLOCKS[block[1]](content))
            elif block[1] == "command":
                lines.append(f"Not measured yet: `bench/bench {name}`.")
        else:
            lines.append(re.sub(r"\{\{(.*?)\}\}", figure, line))
    if "{{command}}" not in text:
        lines += ["", command(content) if content else f"Not measured yet: `bench/bench {name}`."]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def under_heading(text, name):
    """Makes a section below "## NAME", which the overview links to; its own title is bold
    there."""
    text = re.sub(r"<!--.*?-->\n*", "", text, flags=re.S).lstrip()
    title = re.match(r"(#+) (.*)\n", text)
    deeper = 0
    if title:
        deeper = 2 - len(title[1])
        words = title[2].removeprefix(f"{name}: ")
        text = f"**{words[:1].upper()}{words[1:]}**\n" + text[title.end():]
    text = re.sub(r"^(#+) ", lambda match: "#" * max(3, len(match[1]) + deeper) + " ", text,
                  flags=re.M)
    return f"## {name}\n\n{text}"


def overview(contents):
    """Lists all targets of all experiments."""
    rows = [[f"[{name}](#{name})", one["text"], report.number(one["value"]),
             bar_text(one["bar"]), report.outcome(one["reached"], "**missed**")]
            for name, content in contents.items() if content for one in content["verdicts"]]
    heads = ["experiment", "what is to be reached", "found", "bar", ""]
    return markdown(heads, rows) if rows else ""


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def load(directory, name):
    """Returns what an experiment stored in the results, or None."""
    text = read(os.path.join(directory, name + ".json"))
    return text and json.loads(text)


def weave(source, directory, names, summaries, target):
    """Writes RESULTS.md for these experiments, in this order."""
    contents = {name: load(directory, name) for name in names}
    parts = [TITLE, overview(contents)]
    for name in names:
        text = read(os.path.join(source, "sections", name + ".md"))
        if text is None:
            summary = summaries[name]
            text = (f"{summary[:1].upper()}{summary[1:]}.\n\n"
                    "{{command}}\n\n{{verdict}}\n\n{{plot}}\n\n{{table}}\n")
        parts.append(section(under_heading(text, name), contents[name], name))
    where = os.path.relpath(directory, os.path.dirname(os.path.abspath(target)))
    with open(target, "w", encoding="utf-8") as file:
        text = "\n".join(part.rstrip("\n") + "\n" for part in parts if part)
        file.write(text.replace("](results/", f"]({where}/"))
