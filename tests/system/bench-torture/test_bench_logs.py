# SPDX-License-Identifier: MIT
"""How bench evaluates logs, and the files that it makes for them."""

import gzip
import os
import sys

import pytest

BENCH = os.path.join(os.environ["srcdir"], "bench")
sys.path.insert(0, BENCH)

from lib import documents, specweb, weblog  # noqa: E402
from lib.process import Failure  # noqa: E402

pytestmark = pytest.mark.bench

COMMON = '10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326'
COMBINED = ('::1 - some one [10/Oct/2000:13:55:36 -0700] "GET /b?x=\\"y HTTP/1.1" 200 10'
            ' "http://x/" "a \\"quoted\\" agent"')
OTHERS = ('10.0.0.1 - - [x] "POST /a.gif HTTP/1.0" 200 5',
          '10.0.0.1 - - [x] "GET /a.gif HTTP/1.0" 304 -',
          '10.0.0.1 - - [x] "GET /none HTTP/1.0" 404 200',
          '10.0.0.1 - - [x] "\\x16\\x03" 400 226', '10.0.0.1 - - [x] "-" 408 0')
BAD = ("words", '10.0.0.1 - - [x] "GET / HTTP/1.0" 200', '10.0.0.1 - - [x] "GET / HTTP/1.0 200 5',
       COMMON + ' "only a referer"', COMMON + " more")


def test_common_and_combined():
    log = weblog.parse([COMMON, COMBINED, COMMON.replace("2326", "4000"), COMMON, *OTHERS], "x")
    assert log.order == [0, 1, 0, 0]
    assert log.sizes == [4000, 10]  # the largest size in the log
    assert log.words.startswith("x: 4 of 9 requests, 2 documents")
    assert "no requests" not in log.words


@pytest.mark.parametrize("line", BAD)
def test_bad_lines_are_told(line):
    log = weblog.parse([*[COMMON] * 10, line, *[COMMON] * 10], "x")
    assert len(log.order) == 20
    assert "1 lines are no requests: 11" in log.words


def test_no_log():
    for lines in (BAD, [COMMON] * 8 + ["words"], list(OTHERS), []):
        with pytest.raises(Failure):
            weblog.parse(lines, "x")


def test_tabs(tmp_path):
    text = ("# seconds\tclient\tmethod\tpath\tstatus\tbytes\n"
            "1\tc0\tGET\t/a b\t200\t7\n2\tc0\tGET\t/c\t200\t9\n3\tc0\tHEAD\t/d\t200\t9\n"
            "3\tc0\tGET\t/e\t200\t-9\n" + "1\tc0\tGET\t/c\t200\t8\n" * 20)
    with gzip.open(tmp_path / "x.gz", "wt") as file:
        file.write(text)
    log = weblog.read(str(tmp_path / "x.gz"))
    assert (log.order, log.sizes) == ([0, 1] + [1] * 20, [7, 9])
    assert "1 lines are no requests: 5" in log.words
    (tmp_path / "y.gz").write_bytes((tmp_path / "x.gz").read_bytes()[:40])
    with pytest.raises(Failure):
        weblog.read(str(tmp_path / "y.gz"))


def test_prefix():
    log = weblog.Log([2, 0, 1, 0, 2, 3, 1], [10, 20, 30, 40])
    part = log.within(41)
    assert (part.order, part.sizes) == ([0, 1, 1, 0], [30, 10])
    assert log.within(1000).order == [0, 1, 2, 1, 0, 3, 2]
    assert log.within(10).sizes == [10]


class Context:
    def __init__(self, directory):
        self.directory = str(directory)




def test_documents(tmp_path):
    pages = [("/0/a", 0), ("/0/b", 1), ("/1/c", 100_000), ("/1/d", 3_000_000)]
    made = documents.Documents(Context(tmp_path), "root", pages)
    for number, (path, size) in enumerate(pages):
        with open(made.root + path, "rb") as file:
            data = file.read()
        assert data == documents.body(size, number) and len(data) == size
    assert documents.body(1000, 1) != documents.body(1000, 2)
    assert made.resident() == 1
    kept = made.drop()
    assert kept in (0, 1)  # on a disk, or in memory forever
    assert made.resident() == kept


def test_specweb_shares():
    pages = specweb.shares()
    assert len(pages) == 25 * 36 == len({path for path, *_ in pages})
    assert sum(share for *_, share in pages) == pytest.approx(1)
    assert 120e6 < sum(size for _, size, _ in pages) < 135e6
    by_class = [sum(share for path, _, share in pages if f"class{kind}_" in path)
                for kind in range(4)]
    assert by_class == pytest.approx([0.35, 0.50, 0.14, 0.01])
    first, second = (sum(share for path, _, share in pages if f"dir{number:05d}/" in path)
                     for number in range(2))
    assert first / second == pytest.approx(2)
    # Within a class the fifth file has the largest share: 35.3 %.
    middle = sum(share for path, _, share in pages if path.endswith("class1_4"))
    assert middle == pytest.approx(0.5 * 0.3535, rel=1e-3)
    assert {size for path, size, _ in pages if "class0_" in path} \
        == {102, 204, 307, 409, 512, 614, 716, 819, 921}


def test_specweb_list_has_the_shares():
    pages = specweb.shares()
    drawn = specweb.drawn_from(pages)
    assert abs(len(drawn) - specweb.DRAWN_FROM) <= 1
    counts = {}
    for path, _ in drawn:
        counts[path] = counts.get(path, 0) + 1
    assert all(abs(counts.get(path, 0) - share * specweb.DRAWN_FROM) <= 1
               for path, _, share in pages)
