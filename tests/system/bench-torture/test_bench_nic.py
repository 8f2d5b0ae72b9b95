# SPDX-License-Identifier: MIT
"""What bench nic makes of figures, and what it tells its guests."""

import os
import subprocess
import sys
import types

import pytest

BENCH = os.path.join(os.environ["srcdir"], "bench")
sys.path.insert(0, BENCH)

from lib import guests, nic, report, weave  # noqa: E402
from lib.experiments import Context  # noqa: E402
from lib.process import Failure  # noqa: E402

pytestmark = pytest.mark.bench
OFFLOAD = "offload, MTU 1500"


def context():
    options = types.SimpleNamespace(build="", cpus=(0, 1), runs=1, seconds=1, sizes=None,
                                    connections=None, io=[], quick=False, before=None,
                                    servers=None)
    return Context(options, BENCH, "")


def nic_case(body, size, network=OFFLOAD, card="virtio", **rows):
    return {"parameters": {"kernel": "Linux 6.1", "card": card, "network": network, "body": body,
                           "size": size},
            "runs": {row.replace("_", "-"): [{nic.FIELD: value} for value in values]
                     for row, values in rows.items()}}


def found(case):
    return [(text.split(",")[1].strip(), round(value, 3), bar, reached)
            for text, value, bar, reached in nic.verdicts([case])]


def test_targets_are_of_the_best_peer():
    case = nic_case("static", nic.MB, sweet=[50, 90, 50], nginx=[120], lighttpd=[100], h2o=[200],
                    null_send=[10])
    assert found(case) == [("SWEET : best peer (lighttpd)", 0.5, 0.5, True)]
    case = nic_case("dynamic", nic.MB, sweet=[26], **{"nginx_fastcgi": [100]})
    assert found(case) == [("SWEET : best peer (nginx-fastcgi)", 0.26, 0.25, False)]
    assert found(nic_case("dynamic", nic.KB, sweet=[26], nginx_fastcgi=[100])) == []


def test_null_suffices_at_one_size_only():
    rows = {"sweet": [80], "nginx": [100], "null_send": [90], "null_splice": [75]}
    assert found(nic_case("static", 100 * nic.KB, **rows)) \
        == [("SWEET : null-splice", 1.067, 1.1, True)]
    assert found(nic_case("static", nic.MB, **rows)) \
        == [("SWEET : best peer (nginx)", 0.8, 0.5, False)]


def test_learnt_route_is_compared_with_the_best_fixed_method():
    case = nic_case("static", nic.MB, sweet=[105], sweet_copy=[300], sweet_zerocopy=[100],
                    sweet_kernel=[50])
    assert found(case) == [("SWEET : its best method (sweet-zerocopy)", 1.05, 1.05, True)]


def test_registered_memory_is_compared_with_the_same_without():
    rows = {"sweet": [9], "sweet_zerocopy": [50], "sweet_unregistered": [49], "sweet_small": [9],
            "sweet_small_unregistered": [10]}
    assert found(nic_case("static", nic.MB, **rows))[1:] \
        == [("sweet-zerocopy : sweet-unregistered", 1.02, 1.02, False),
            ("sweet-small : sweet-small-unregistered", 0.9, 1.02, True)]
    assert found(nic_case("static", 100 * nic.KB, **rows))[-1][-2:] == (0.9, True)


def test_other_settings_have_no_targets():
    rows = {"sweet": [1], "nginx": [1]}
    assert found(nic_case("static", nic.MB, network="no offload, MTU 1500", **rows)) == []
    assert found(nic_case("static", nic.MB, card="e1000e", **rows)) == []
    assert found(nic_case("static", nic.MB, nginx=[1])) == []


def test_figures_of_a_guest():
    text = ("guest: 6.1\nfigure\toffload, MTU 1500|static|sweet-copy|1024\t32919\t30792\t1\n"
            "figure\toffload, MTU 1500|idle||0\t-120\t0\t0\nfigure\tbroken\n")
    figures = nic.parse_figures(text)
    assert figures == [(OFFLOAD, "static", "sweet-copy", 1024, 32919, 30792, 1),
                       (OFFLOAD, "idle", "", 0, -120, 0, 0)]
    one = context()
    nic.add_cases(one, "6.1", "virtio", figures, {})
    (case,) = one.cases
    assert case["runs"] == {"sweet-copy": [
        {nic.FIELD: 32919, "client_instructions": 30792, "retransmitted": 1}]}
    assert one.records == [{"kernel": "Linux 6.1", "card": "virtio", "network": OFFLOAD,
                            "idle_second": -120}]


def test_tables_compare_with_the_best_peer(capsys):
    one = context()
    nic.add_cases(one, "6.1", "virtio", [(OFFLOAD, "static", row, 1024, count, 1, 0) for row, count
                                         in (("sweet", 4000), ("nginx", 5000), ("h2o", 8000))], {})
    nic.tell(one)
    content = {"cases": one.cases, "tables": one.tables, "columns": None}
    assert "| offload, MTU 1500 | 1 KB | 4,000 (0.80) | 5,000 (1.00) | 8,000 (1.60) |" \
        in weave.tables(content)
    # No CPU times, so no ratios of them.
    assert report.ratios(one.cases[0]) == []
    capsys.readouterr()


def test_cases_of_the_guest():
    lines = nic.case_lines([OFFLOAD], ["static", "dynamic"], [1024, nic.MB],
                           ["sweet", "null-send", "nginx-fastcgi"], 3).splitlines()
    fields = [line.split("\t") for line in lines]
    assert {len(line) for line in fields} == {13}
    assert [line[0].split("|")[1:] for line in fields] == [
        ["idle", "", "0"], ["static", "sweet", "1024"], ["static", "null-send", "1024"],
        ["static", "sweet", str(nic.MB)], ["static", "null-send", str(nic.MB)],
        ["dynamic", "sweet", "1024"], ["dynamic", "nginx-fastcgi", "1024"],
        ["dynamic", "sweet", str(nic.MB)], ["dynamic", "nginx-fastcgi", str(nic.MB)]]
    sweet, null, page = fields[1], fields[2], fields[5]
    assert sweet[1:10] == ["1500", "1", "8080", "/1024", "1024", "1", "400", "2000", "16"]
    assert "--send-method auto" in sweet[12] and sweet[10] == "3"
    assert null[6] == "0" and null[12].endswith("8080 1024 100 uring batch kept")
    assert page[4] == "/generate?size=1024"
    assert "--send-method zerocopy" in nic.command("sweet-zerocopy", 1)
    assert "insmod" in nic.command("sweet-kernel", 1) and "insmod" not in sweet[12]


def test_small_pages_are_for_large_bodies_in_one_network():
    lines = nic.case_lines([OFFLOAD, "offload, MTU 9000"], ["static"], [1024, nic.MB],
                           list(nic.PAGES), 3).splitlines()
    fields = [line.split("\t") for line in lines if "|idle|" not in line]
    pair = [("sweet-small", "0", False), ("sweet-small-unregistered", "0", True)]
    assert [(line[0], line[11], "--registered-memory off" in line[12]) for line in fields] == [
        (f"{OFFLOAD}|static|{row}|{nic.MB}", huge, off)
        for row, huge, off in [("sweet-unregistered", "1", True), *pair * nic.STARTS]]
    assert all("--send-method zerocopy" in line[12] for line in fields)


def test_what_is_compared_starts_several_times():
    names = ["sweet-zerocopy", "sweet-small", "sweet-small-unregistered"]
    lines = nic.case_lines([OFFLOAD, "offload, MTU 9000"], ["static"], [nic.KB, nic.MB], names, 3)
    starts = [line.split("|")[2] for line in lines.splitlines()
              if line.startswith(f"{OFFLOAD}|static") and f"|{nic.MB}\t" in line]
    assert starts == names + names[1:] * (nic.STARTS - 1)
    assert lines.count(f"|sweet-zerocopy|{nic.KB}\t") == 2


def test_memory_is_registered_in_the_warm_up():
    """libnabc registers a block of 2 MiB after it has sent 24 times as much from it."""
    for quick in (False, True):
        for size in (100 * nic.KB, nic.MB):
            assert nic.warm_up_of(size, quick) * size > 24 * 2 * nic.MB
    assert nic.warm_up_of(10 * nic.KB) == nic.WARM_UP
    assert nic.warm_up_of(10 * nic.KB, True) == nic.QUICK_WARM_UP


def test_each_row_has_a_command_that_the_guest_reads():
    """nic/server.c reads at most 999 bytes of it."""
    for body, rows in nic.ROWS.items():
        for row in rows:
            line = nic.case_line(OFFLOAD, body, row, nic.MB, 1)
            assert len(line.split("\t")[-1]) < 999 and line.count("\n") == 1


def test_configurations_name_the_guests_address():
    texts = nic.configurations(nic.MB)
    assert all(f"{nic.SERVER}" in text and nic.ROOT in text for text in texts.values())
    assert "fastcgi_pass" in texts["nginx-fastcgi.conf"]
    assert "fastcgi_pass" not in texts["nginx.conf"]


@pytest.mark.parametrize("text", ("virtio,gigabit", "", "virtio,"))
def test_unknown_cards_are_refused(text):
    with pytest.raises(ValueError):
        nic.names(nic.CARDS)(text)


def test_failure_of_a_guest_shows_both(tmp_path):
    def ended(name, status, text):
        guest = object.__new__(guests.Guest)
        guest.name, guest.seconds, guest.log = name, 1, str(tmp_path / name)
        guest.popen = subprocess.Popen(["sh", "-c", f"exit {status}"])
        with open(guest.log, "w") as file:
            file.write(text)
        return guest

    assert nic.finish(ended("server", guests.GOOD, "a\r\nb\n"), ended("client", guests.GOOD, "")) \
        == "a\nb\n"
    with pytest.raises(Failure, match="(?s)server ends with 1, not 33.*no file.*client:.*refused"):
        nic.finish(ended("server", 1, "no file\n"), ended("client", 0, "refused\n"))


def test_nic_is_skipped_without_qemu(monkeypatch, tmp_path):
    one = types.SimpleNamespace(source=BENCH, directory=str(tmp_path), build=str(tmp_path),
                                skipped=None)
    monkeypatch.setattr(guests, "which", lambda name: None)
    monkeypatch.delenv("NABC_NO_SKIP", raising=False)
    nic.measure(one)
    assert one.skipped.startswith("no qemu-system-x86_64")
