# SPDX-License-Identifier: MIT
"""How files leave by a network card that computes checksums, and by one that does not."""

import json
import os
import subprocess
import sys
import urllib.request

import pytest

from files import write
from server import BUILD, running

sys.path.insert(0, os.path.join(os.environ["srcdir"], "bench"))
from lib import netns  # noqa: E402

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make namespaces"),
    pytest.mark.needs("ethtool", "ip"),
]
NABCCTL = os.path.join(BUILD, "nabcctl", "nabcctl")
SIZES = (100 << 10, 1 << 20)


@pytest.fixture(scope="module")
def pair():
    with netns.Pair() as made:
        yield made


def route(cache):
    output = subprocess.run([NABCCTL, "--cache", cache, "--json", "routes"], check=True,
                            stdout=subprocess.PIPE).stdout
    return next(one for one in json.loads(output) if one["address"] == netns.SERVER)


@pytest.mark.parametrize("offload", ["on", "off"])
def test_card(kind, pair, tmp_path, offload):
    pair.offload("tx", offload, "sg", offload)
    pages = {f"/{size}": os.urandom(size) for size in SIZES}
    for name, page in pages.items():
        write(tmp_path / "root" / name[1:], page)
    cache = tmp_path / "cache"
    with running(kind, tmp_path / "root", "--cache-socket", cache, prefix=pair.server.argv(),
                 listen=f"{netns.SERVER}:0") as server:
        with pair.client:
            for _ in range(20):
                for name, page in pages.items():
                    url = f"http://{netns.SERVER}:{server.port}{name}"
                    with urllib.request.urlopen(url, timeout=20) as response:
                        assert response.read() == page
        found = route(cache)
    if offload == "on":
        assert found["bytes"]["splice"] + found["bytes"]["zerocopy"] > 0
    else:
        assert found["why"] == "the device does not offload checksums"
        assert found["bytes"]["copy"] == 20 * sum(SIZES)
