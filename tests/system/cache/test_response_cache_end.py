# SPDX-License-Identifier: MIT
"""Cached responses of programs: one call for many clients, a stale one while a new one
is fetched, and what drops them."""

import os
import stat
import subprocess
import time

import pytest

from client import Client, fetch, request
from files import MB, write
from server import SCALE, TIMEOUT, running
from test_response_cache import NABCCTL, TOLD, Site, gate, site, whole


# --- one call for many -------------------------------------------------------------------------


def ask_all(site, target, count, fields=""):
    """That many clients that have sent a request and wait."""
    clients = [Client(site.port) for _ in range(count)]
    for client in clients:
        client.send(request(target, "GET", fields))
    return clients


def ask_first(site, target, before):
    """A client whose request goes to the worker, while later ones wait for its response."""
    fetcher = ask_all(site, target, 1)[0]
    site.server.wait_status(lambda status: status["answers"]["misses"] > before["misses"])
    return fetcher


def await_waiting(site, count, before):
    site.server.wait_status(lambda status: status["answers"]["waited"] - before >= count)


def bodies(clients):
    got = [client.response().body for client in clients]
    for client in clients:
        client.close()
    return got


def test_one_call_for_all(site, gate):
    before = site.counters()
    count = 100 // SCALE
    clients = ask_all(site, f"/w/r/all?Cache-Control:max-age=30&wait={gate.path}", count)
    await_waiting(site, count - 1, before["waited"])
    gate.let()
    assert len(set(bodies(clients))) == 1
    after = site.counters()
    assert after["misses"] - before["misses"] == 1
    assert after["stored"] - before["stored"] == 1


def test_what_is_not_kept_is_asked_for_by_each(site, gate):
    before = site.counters()["waited"]
    clients = ask_all(site, f"/w/r/each?Cache-Control:no-store&wait={gate.path}", 5)
    await_waiting(site, 4, before)
    gate.let(5)
    assert len(set(bodies(clients))) == 5


@pytest.mark.clear("a client with unread tickets resets, which ends its request")
def test_the_fetcher_goes(site, gate):
    """Its worker responds all the same, for the waiting clients."""
    target = f"/w/r/goes?Cache-Control:max-age=30&wait={gate.path}"
    before = site.counters()
    fetcher = ask_first(site, target, before)
    clients = ask_all(site, target, 3)
    await_waiting(site, 3, before["waited"])
    fetcher.close()
    gate.let()
    assert len(set(bodies(clients))) == 1
    assert site.counters()["misses"] == before["misses"] + 1


def test_one_who_waits_goes(site, gate):
    target = f"/w/r/leaves?Cache-Control:max-age=30&wait={gate.path}"
    before = site.counters()
    clients = [ask_first(site, target, before), *ask_all(site, target, 3)]
    await_waiting(site, 3, before["waited"])
    clients.pop(2).close()
    gate.let()
    assert len(set(bodies(clients))) == 1


def test_the_worker_ends(kind, tmp_path, gate):
    """No client is forgotten when the fetcher's worker dies."""
    config = tmp_path / "sweet.conf"
    write(config, f"[sweet]\nworker=/w={TOLD}\nworkers=1\ncache=response\n".encode())
    with running(kind, tmp_path, "--config", config) as server:
        site = Site(server, tmp_path)
        target = f"/w/a?Cache-Control:max-age=30&wait={gate.path}"
        clients = ask_all(site, target, 1)
        server.wait_status(lambda status: status["answers"]["misses"] == 1)
        clients += ask_all(site, target, 2)
        await_waiting(site, 2, 0)
        workers = server.workers()
        # Requests that a worker has not begun go to the next one.
        gate.await_comer(workers)
        for process in workers.values():
            process.kill()
        # The first gets an error; the others send their own requests, to the next worker.
        assert clients[0].response().status == 502
        gate.let(2)
        assert [client.response().status for client in clients[1:]] == [200, 200]
        for client in clients:
            client.close()


def test_the_server_ends(kind, tmp_path, gate):
    """While one response is fetched for a client, one in the background, and others wait."""
    config = tmp_path / "sweet.conf"
    write(config, f"[sweet]\nworker=/w={TOLD}\nworkers=2\ncache=response\nstop-timeout=0s\n"
                  .encode())
    with running(kind, tmp_path, "--config", config) as server:
        stale = f"/w/s?Cache-Control:max-age=1,+stale-while-revalidate=600&wait={gate.path}"
        gate.let()
        fetch(server.port, stale)
        clients = ask_all(Site(server, tmp_path),
                          f"/w/a?Cache-Control:max-age=30&wait={gate.path}", 4)
        await_waiting(Site(server, tmp_path), 3, 0)
        deadline = time.monotonic() + TIMEOUT
        while server.status()["answers"]["stale"] == 0:
            fetch(server.port, stale)
            assert time.monotonic() < deadline
            time.sleep(0.05)
    for client in clients:
        client.close()


# --- a stale one meanwhile ----------------------------------------------------------------------


def test_stale_while_revalidate(site, gate):
    target = ("/w/r/stale?Cache-Control:max-age=1,+stale-while-revalidate=600"
              f"&wait={gate.path}")
    gate.let()
    first = site.get(target)
    before = site.counters()
    deadline = time.monotonic() + TIMEOUT
    while site.counters()["stale"] == before["stale"]:
        assert site.get(target).body == first.body
        assert time.monotonic() < deadline
        time.sleep(0.05)
    # The worker is busy with it, and no client waits for it.
    for _ in range(5):
        assert site.get(target).body == first.body
    gate.let()
    site.server.wait_status(lambda status: status["answers"]["stored"] > before["stored"])
    assert site.get(target).body != first.body


# --- what drops them ------------------------------------------------------------------------------


def test_destroyed_by_its_worker(site):
    target = "/w/r/kept?X-NABC-Max-Age:600&keep&size=300000"
    first = site.call(target)
    assert site.call(target) == first
    # One client reads it slowly, so that the server holds it all the time.
    with Client(site.port, buffer=4096) as slow:
        slow.send(request(target))
        slow.head()
        site.get("/w/other?destroy")
        again = site.call(target)
        assert again > first
        assert site.call(target) == again
        assert slow.take(300000)[: len(str(first))] == str(first).encode()


def test_one_unit_of_two_stays(site):
    """One-shot units are copied; a kept one ends the response when it is destroyed."""
    target = "/w/r/mixed?X-NABC-Max-Age:600&mixed&size=100"
    first = site.get(target).body
    assert len(first.split(b"GET")) == 3
    # The worker has its memory back and overwrites it.
    for number in range(20):
        site.get(f"/w/other?{number}")
    assert site.get(target).body == first
    assert site.purge("/w/r/mixed*") == 1
    second = site.get(target).body
    one, other = first.split(b"\n"), second.split(b"\n")
    assert one[0] == other[0] and one[1] != other[1]
    assert site.get(target).body == second
    site.get("/w/other?destroy")
    assert site.get(target).body.split(b"\n")[0] != one[0]
    site.get("/w/other?destroy")


def test_kept_unit_is_not_copied(site):
    target = "/w/r/kept2?X-NABC-Max-Age:600&keep&size=300000"
    site.get("/w/other?destroy")
    before = site.server.cache_used()
    site.get(target)
    assert site.is_kept(target)
    # What the test before has destroyed may have been in use still.
    site.server.wait_status(lambda status: status["cache"]["used"] <= before)
    site.get("/w/other?destroy")


def test_purge_by_url(site):
    target = "/w/r/url?Cache-Control:max-age=600&Vary:Accept-Language"
    de, en = "Accept-Language: de\r\n", "Accept-Language: en\r\n"
    first = [site.call(target, de), site.call(target, en)]
    other = site.call(target + "&x")
    assert site.purge(f"http://test{target}") == 2
    assert site.purge(f"http://test{target}") == 0
    assert site.call(target, de) not in first
    assert site.call(target + "&x") == other
    assert site.purge("http://test/w/r/url*") == 2
    assert site.call(target + "&x") != other


def test_purge_by_tag(site):
    targets = [f"/w/r/tag?Cache-Control:max-age=600&X-NABC-Tag:t{n}+all&{n}" for n in range(3)]
    first = [site.call(target) for target in targets]
    assert site.purge("t1") == 1
    assert [site.call(target) == call for target, call in zip(targets, first)] == [
        True, False, True]
    assert site.purge("all", "t2") == 3
    assert "X-NABC-Tag" not in site.get(targets[0])


def test_purge_by_an_answer(site):
    target = "/w/r/answer?Cache-Control:max-age=600&X-NABC-Tag:mine"
    first = site.call(target)
    got = site.get("/w/r/x?X-NABC-Purge:other,+mine&Cache-Control:no-store", method="POST",
                   fields="Content-Length: 0\r\n")
    assert "X-NABC-Purge" not in got
    assert site.call(target) != first


def test_changed_by_a_request(site):
    target = "/w/t/changed"
    first = site.call(target)
    site.get(target, "Content-Length: 0\r\n", "POST")
    second = site.call(target)
    assert second != first
    site.get(target + "?status=400", "Content-Length: 0\r\n", "POST")
    site.get("/w/t/changed2", "Content-Length: 0\r\n", "DELETE")
    assert site.call(target) == second


def test_purged_while_it_is_fetched(site, gate):
    target = f"/w/r/late?Cache-Control:max-age=600&X-NABC-Tag:late&wait={gate.path}"
    before = site.counters()
    clients = ask_all(site, target, 1)
    site.server.wait_status(lambda status: status["answers"]["misses"] > before["misses"])
    assert site.purge("late") == 0
    gate.let(2)
    assert bodies(clients)[0] != site.get(target).body


def test_purge_is_for_operators(site):
    done = subprocess.run([NABCCTL, "--cache", site.folder / "socket", "purge", "a b"],
                          capture_output=True, timeout=TIMEOUT)
    assert done.returncode == 1 and b"neither a URL" in done.stderr
    if os.geteuid() == 0:
        (site.folder / "socket").chmod(0o666)
        for folder in [site.folder, *site.folder.parents]:
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
        done = subprocess.run(
            ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", NABCCTL,
             "--cache", site.folder / "socket", "purge", "/*"],
            capture_output=True, timeout=TIMEOUT)
        assert done.returncode == 1 and b"permission denied" in done.stderr


# --- responses in pieces -------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1000, 70000])
def test_pieces(site, size):
    target = f"/w/r/pieces?Cache-Control:max-age=600&pieces=5&size={size}"
    first = whole(site, target)
    assert first.count(b"GET") == 6 and len(first) >= 6 * size
    assert whole(site, target) == first
    assert int(site.get(target)["Content-Length"]) == len(first)


def test_pieces_of_a_known_length(site):
    """Bytes beyond the length are neither sent nor cached."""
    for length in (20, 3000, 6012):
        target = (f"/w/r/pieces?Cache-Control:max-age=600&pieces=5&size=1000"
                  f"&Content-Length:{length}")
        first = whole(site, target)
        assert len(first) in (length, 0)
        assert len(whole(site, target)) in (length, 0)


def test_a_first_piece_beyond_the_length(site):
    """The same if all is there at once, and only the end follows."""
    target = "/w/r/pieces?Cache-Control:max-age=600&end&size=1000&Content-Length:20"
    before = site.counters()["stored"]
    assert [len(site.get(target).body) for _ in range(3)] == [20] * 3
    assert site.counters()["stored"] == before
    good = "/w/r/pieces?Cache-Control:max-age=600&end&size=1000"
    assert whole(site, good) == whole(site, good)
    assert site.counters()["stored"] == before + 1


def test_pieces_that_break_off(site):
    target = "/w/r/pieces?Cache-Control:max-age=600&pieces=5&size=1000&abort"
    before = site.counters()["stored"]
    assert [whole(site, target) for _ in range(2)] == [b"", b""]
    assert site.counters()["stored"] == before


def test_too_many_pieces(site):
    target = f"/w/r/pieces?Cache-Control:max-age=600&pieces=5&size={MB}"
    before = site.counters()["stored"]
    one, other = whole(site, target), whole(site, target)
    assert len(one) > 6 * MB and len(other) > 6 * MB and one != other
    assert site.counters()["stored"] == before


# --- programs that have exited -------------------------------------------------------------------


def test_unit_of_a_script(kind, tmp_path):
    """It is used without a copy, and destroying it is enough."""
    script = tmp_path / "cgi" / "page"
    write(script, f"""#!/bin/sh
echo x >>{tmp_path}/calls
id=$(wc -l <{tmp_path}/calls | {NABCCTL} --cache {tmp_path}/socket put --ttl 600 -) || exit 1
echo "$id" >{tmp_path}/id
printf 'Content-Type: text/plain\\r\\nX-NABC-Max-Age: 600\\r\\nX-NABC-Cache-Id: %s\\r\\n\\r\\n' "$id"
""".encode()).chmod(0o755)
    config = tmp_path / "sweet.conf"
    write(config, f"[sweet]\ncache-socket={tmp_path}/socket\ncgi=/cgi={tmp_path}/cgi\n"
                  "cache=response\n".encode())
    with running(kind, tmp_path, "--config", config) as server:
        for call in range(1, 4):
            for _ in range(3):
                got = fetch(server.port, "/cgi/page")
                assert (got.status, int(got.body)) == (200, call)
            destroyed = (tmp_path / "id").read_text().strip()
            subprocess.run([NABCCTL, "--cache", tmp_path / "socket", "destroy", destroyed],
                           timeout=TIMEOUT, check=True)
        assert server.status()["answers"]["dead"] == 2
