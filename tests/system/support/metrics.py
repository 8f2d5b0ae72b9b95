# SPDX-License-Identifier: MIT
"""A strict reader of Prometheus' text format, version 0.0.4: what a scraper would tolerate
(samples out of place, repeated, or without type) is an error."""

import math
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
HELP = re.compile(rf"^# HELP ({NAME}) (\S.*)$")
TYPE = re.compile(rf"^# TYPE ({NAME}) (counter|gauge|histogram)$")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
SAMPLE = re.compile(rf"^({NAME})(?:\{{(.*)\}})? (-?\d+(?:\.\d+)?|\+Inf)$")


class Family:
    def __init__(self, name, kind):
        self.name, self.kind, self.samples = name, kind, {}


def labels_of(text):
    labels, at = {}, 0
    while at < len(text):
        label = LABEL.match(text, at)
        assert label, text
        name, value, _ = label.groups()
        assert name not in labels, text
        labels[name] = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], value)
        at = label.end()
    assert not text.endswith(","), text
    return tuple(sorted(labels.items()))


def check_histogram(family):
    """Checks that buckets grow up to +Inf, which equals the count, and that there is a sum."""
    by = {name: {} for name in ("bucket", "sum", "count")}
    for (name, labels), value in family.samples.items():
        by[name[len(family.name) + 1:]][labels] = value
    assert list(by["sum"]) == list(by["count"]) == [()]
    limits = [float(dict(labels)["le"]) for labels in by["bucket"]]
    counts = list(by["bucket"].values())
    assert limits == sorted(set(limits)) and math.isinf(limits[-1])
    assert counts == sorted(counts) and counts[-1] == by["count"][()]


def parse(text):
    """Returns families by name, and each sample by (name, labels)."""
    assert text.endswith("\n")
    families, family, promised = {}, None, None
    for line in text.removesuffix("\n").split("\n"):
        if found := HELP.match(line):
            assert promised is None and found[1] not in families, line
            promised = found[1]
        elif found := TYPE.match(line):
            assert found[1] == promised, line
            assert not family or family.samples, f"{family.name} has no sample"
            family = families[promised] = Family(promised, found[2])
            promised = None
        else:
            found = SAMPLE.match(line)
            assert found and family and promised is None, line
            ends = ("_bucket", "_sum", "_count") if family.kind == "histogram" else ("",)
            assert found[1] in [family.name + end for end in ends], line
            key = (found[1], labels_of(found[2] or ""))
            assert key not in family.samples, line
            family.samples[key] = float(found[3])
            assert family.samples[key] >= 0
    for family in families.values():
        assert family.name.startswith("sweet_"), family.name
        assert family.name.endswith("_total") == (family.kind == "counter"), family.name
        assert not re.search(r"_(ms|us|kb|milliseconds|percent)(_|$)", family.name)
        if family.kind == "histogram":
            check_histogram(family)
    return families


def value(families, name, **labels):
    """Returns the value of a sample; name: of its family, with _count or _sum for a
    histogram's."""
    family = families.get(name) or families[name.rpartition("_")[0]]
    return family.samples[name, tuple(sorted(labels.items()))]
