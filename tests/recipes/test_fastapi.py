# SPDX-License-Identifier: MIT
"""FastAPI with uvicorn by doc/recipes/fastapi.md: tokens, uploads, streams, WebSocket."""

import asyncio
import hashlib
import json
import textwrap

import pytest

import applications
import tls
from files import MB, pattern
from recipe import is_short
from server import TIMEOUT

# www.uvicorn.org/deployment: "Running behind Nginx", its http part with map and upstream.
NGINX = 21
HOST = "api.example.org"
APPLICATION = """
    import asyncio
    import hashlib
    from fastapi import Depends, FastAPI, Request, UploadFile, WebSocket, WebSocketDisconnect
    from fastapi.responses import FileResponse, StreamingResponse
    from fastapi.security import HTTPBearer
    from pydantic import BaseModel

    app = FastAPI()
    bell = asyncio.Event()

    class Item(BaseModel):
        name: str
        price: float

    @app.post("/items", status_code=201)
    def add(item: Item, token=Depends(HTTPBearer())):
        return {"item": item, "token": token.credentials}

    @app.post("/upload")
    async def upload(file: UploadFile):
        data = await file.read()
        return {"name": file.filename, "size": len(data), "sum": hashlib.sha256(data).hexdigest()}

    @app.post("/raw")
    async def raw(request: Request):
        size, made = 0, hashlib.sha256()
        async for piece in request.stream():
            size += len(piece)
            made.update(piece)
        return {"size": size, "sum": made.hexdigest()}

    @app.get("/download/{count}")
    def download(count: int):
        return StreamingResponse((b"%08d" % number * 1000 for number in range(count)),
                                 media_type="application/octet-stream",
                                 headers={"Content-Disposition": 'attachment; filename="numbers"'})

    @app.get("/file")
    def file():
        return FileResponse("/srv/fastapi/file")

    @app.get("/seen")
    def seen(request: Request):
        return {"address": request.client.host, "url": str(request.url)}

    @app.get("/events")
    async def events():
        async def made():
            yield "data: first\\n\\n"
            await bell.wait()
            bell.clear()
            yield "data: second\\n\\n"
        return StreamingResponse(made(), media_type="text/event-stream")

    @app.get("/ring")
    async def ring():
        bell.set()

    @app.websocket("/chat/{name}")
    async def chat(socket: WebSocket, name: str):
        await socket.accept()
        try:
            while True:
                message = await socket.receive()
                if message.get("text"):
                    await socket.send_text(f"{name}: {message['text']}")
                elif message.get("bytes"):
                    await socket.send_bytes(message["bytes"][::-1])
                else:
                    break
        except WebSocketDisconnect:
            pass
    """


@pytest.fixture(scope="module")
def site(recipe):
    applications.folders(recipe, "/srv/fastapi")
    applications.write("/srv/fastapi/application.py", textwrap.dedent(APPLICATION))
    applications.write("/srv/fastapi/file", pattern(10 * MB))
    applications.serve(recipe, ["uvicorn", "--uds", "/run/fastapi/uvicorn.sock", "--proxy-headers",
                                "--forwarded-allow-ips", "*", "--app-dir", "/srv/fastapi",
                                "application:app"], "/run/fastapi/uvicorn.sock")
    recipe.start()
    return recipe


@pytest.fixture
def visitor(site):
    return site.visitor(HOST)


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_description(visitor):
    assert "swagger-ui" in visitor.get("/docs").text
    assert "/items" in visitor.get("/openapi.json").json()["paths"]


def test_token(visitor):
    def add(body, **fields):
        return visitor.request("POST", "/items", json.dumps(body).encode(),
                               headers={"Content-Type": "application/json", **fields})

    item = {"name": "Käse", "price": 2.5}
    got = add(item, Authorization="Bearer abc.def")
    assert got.status == 201 and got.json() == {"item": item, "token": "abc.def"}, got
    assert add(item).status == 403
    got = add({"name": "x"}, Authorization="Bearer abc")
    assert got.status == 422 and "price" in got.text, got


def test_uploads(visitor):
    data = pattern(10 * MB)
    got = visitor.post("/upload", files={"file": ("a.bin", "application/octet-stream", data)}).json()
    assert got["size"] == len(data) and got["sum"] == hashlib.sha256(data).hexdigest()
    # A body of unknown length is sent in chunks.
    pieces = (data[begin:begin + MB] for begin in range(0, len(data), MB))
    got = visitor.request("POST", "/raw", pieces, headers={"Content-Type": "x/y",
                                                           "Transfer-Encoding": "chunked"})
    assert got.json() == {"size": len(data), "sum": hashlib.sha256(data).hexdigest()}, got


def test_downloads(visitor):
    got = visitor.get("/download/2000")
    assert got.body == b"".join(b"%08d" % number * 1000 for number in range(2000))
    assert got.headers["Content-Disposition"] == 'attachment; filename="numbers"'
    got = visitor.get("/file")
    assert got.body == pattern(10 * MB) and got.headers["Content-Length"] == str(10 * MB)


def test_what_the_application_sees(site, visitor):
    got = visitor.get("/seen?q=1", headers={"X-Forwarded-For": "1.2.3.4"}).json()
    assert got == {"address": "127.0.0.1", "url": f"http://{HOST}/seen?q=1"}
    got = site.visitor(HOST, "https").get("/seen").json()
    assert got["url"] == f"https://{HOST}/seen", got


def test_events(visitor):
    applications.listen(HOST, visitor)


def test_websocket(site):
    import websockets

    async def talk(name, scheme):
        url = f"{scheme}://{HOST}/chat/{name}"
        secure = {"port": 443, "ssl": tls.usual(), "server_hostname": "localhost"}
        how = secure if scheme == "wss" else {"port": 80}
        async with websockets.connect(url, host="127.0.0.1", max_size=8 * MB, **how) as socket:
            await socket.send("hello")
            assert await socket.recv() == f"{name}: hello"
            large = pattern(4 * MB, seed=name)
            await socket.send(large)
            assert await socket.recv() == large[::-1]
            await (await socket.ping())
        assert socket.close_code == 1000

    async def all_of_them():
        talks = [talk(f"user{n}", scheme) for scheme in ("ws", "wss") for n in range(6)]
        await asyncio.wait_for(asyncio.gather(*talks), 3 * TIMEOUT)

    asyncio.run(all_of_them())
    answer = site.visitor(HOST).get("/chat/nobody")
    assert answer.status == 404, answer
