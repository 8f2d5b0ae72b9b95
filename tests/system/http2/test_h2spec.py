# SPDX-License-Identifier: MIT
"""h2spec, the conformance test of HTTP/2 (RFC 9113 and RFC 7541), with all of its strict cases."""

import subprocess
import xml.etree.ElementTree

import pytest

import tls
import tools
from files import write
from server import TIMEOUT, running

pytestmark = [pytest.mark.clear("it chooses what is below"), pytest.mark.needs("h2spec")]

# All but 5.3, the priorities that RFC 9113 has withdrawn: where the server ignores what is wrong
# with them, h2spec waits until its timeout.
SECTIONS = ["generic", "hpack", "http2/3", "http2/4", "http2/5.1", "http2/5.4", "http2/5.5",
            "http2/6", "http2/7", "http2/8"]
CASES_MIN = 140  # without strict cases there are fewer
# The address serves HTTP/1.1 as well: such a client gets 400 and the end.
OTHER_VERSION = {"Sends invalid connection preface"}


def failures(report):
    """Returns how many cases ran, and {name: what was expected and came} of those that failed."""
    cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
    failed = {}
    for case in cases:
        for kind in ("failure", "error"):
            for found in case.iter(kind):
                failed[case.get("classname")] = found.text
    return len(cases), failed


@pytest.mark.parametrize("how", ["clear", "tls"])
def test_h2spec(kind, tmp_path, how):
    write(tmp_path / "root" / "index.html", b"x" * 100)
    report = tmp_path / "report.xml"
    options = ["--http2", "clear"]
    if how == "tls":
        options = [*tls.options("ec"), "--listen", "127.0.0.1:0,tls"]
    with running(kind, tmp_path / "root", *options) as server:
        port = server.port
        if how == "tls":
            port = server.errors.wait("https://").split("https://127.0.0.1:")[1].split("/")[0]
        run = subprocess.run([tools.find("h2spec"), *SECTIONS, "--strict", "-p", str(port),
                              "-o", str(TIMEOUT), "-j", report,
                              *(["-t", "-k"] if how == "tls" else [])],
                             capture_output=True, text=True, timeout=10 * TIMEOUT)
    assert report.exists(), run.stdout + run.stderr
    count, failed = failures(report)
    assert count >= CASES_MIN, run.stdout
    assert set(failed) == (OTHER_VERSION if how == "clear" else set()), failed
