# SPDX-License-Identifier: MIT
"""The packets of one exchange, one by one, as bench/bench packets shows them."""

import os
import sys

import pytest

from server import running

sys.path.insert(0, os.path.join(os.environ["srcdir"], "bench"))
from lib import packets  # noqa: E402

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make namespaces"),
    pytest.mark.needs("ip", "tcpdump"),
]


@pytest.fixture(scope="module")
def pair():
    with packets.make_pair() as made:
        yield made


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packets")
    packets.make_root(folder)
    return folder


@pytest.mark.parametrize("path", ["nabc", "posix"])
@pytest.mark.parametrize("variant", packets.VARIANTS, ids=lambda variant: variant.name)
def test_packets(kind, pair, root, variant, path):
    if variant.paper:
        assert len(variant.packets) == variant.paper
    with running(kind, root, "--threads", 1, "--data-path", path, *variant.arguments,
                 prefix=pair.server.argv(), listen=f"{pair.addresses[0]}:0") as server:
        found, length = packets.exchange(pair, server.port, variant, server.pid)
    assert length > packets.BODY
    assert found == packets.expected(variant, length)
