# SPDX-License-Identifier: MIT
"""MapServer by doc/recipes/mapserver.md: a map as an image, and its features."""

import os
import struct
import zlib

import pytest

from recipe import is_short

# The least for nginx: server, listen, server_name, location, include fastcgi_params, fastcgi_pass;
# MapServer's own documentation has only Apache and lighttpd.
NGINX = 6
HOST = "maps.example.org"
MAP = """\
MAP
  NAME "islands"
  EXTENT 0 0 100 50
  SIZE 200 100
  IMAGECOLOR 0 0 255
  IMAGETYPE PNG24
  OUTPUTFORMAT
    NAME "png24"
    DRIVER "AGG/PNG"
    MIMETYPE "image/png"
    IMAGEMODE RGB
    EXTENSION "png"
  END
  PROJECTION "init=epsg:4326" END
  WEB
    METADATA
      "ows_title" "Islands of a test"
      "ows_enable_request" "*"
      "ows_srs" "EPSG:4326"
      "ows_onlineresource" "http://maps.example.org/?map=ISLANDS&"
    END
  END
  LAYER
    NAME "island"
    TYPE POLYGON
    STATUS ON
    TEMPLATE "none"
    DATA "island"
    CONNECTIONTYPE OGR
    CONNECTION "/srv/maps/island.json"
    PROJECTION "init=epsg:4326" END
    METADATA
      "ows_title" "The island"
      "ows_include_items" "all"
      "gml_include_items" "all"
      "gml_featureid" "name"
    END
    CLASS STYLE COLOR 255 0 0 END END
  END
END
"""
ISLAND = """\
{"type": "FeatureCollection", "name": "island", "features": [{"type": "Feature",
"properties": {"name": "Avalon"}, "geometry": {"type": "Polygon",
"coordinates": [[[20, 10], [80, 10], [80, 40], [20, 40], [20, 10]]]}}]}
"""
RED, BLUE = bytes([255, 0, 0]), bytes([0, 0, 255])
GET_MAP = ("/?map=ISLANDS&SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=island&STYLES="
           "&SRS=EPSG:4326&BBOX=0,0,100,50&WIDTH=200&HEIGHT=100&FORMAT=image/png")


def pixels(image):
    """Returns the lines of a PNG without alpha and palette, in which equal lines were not filtered in
    another way than MapServer does here."""
    assert image[:8] == b"\x89PNG\r\n\x1a\n", image[:200]
    at, data = 8, b""
    while at < len(image):
        length, kind = struct.unpack(">I4s", image[at:at + 8])
        body = image[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert (depth, colour) == (8, 2), body
        data += body if kind == b"IDAT" else b""
        at += length + 12
    data, before, lines = zlib.decompress(data), bytes(3 * width), []
    for number in range(height):
        begin = number * (3 * width + 1)
        how, line = data[begin], bytearray(data[begin + 1:begin + 1 + 3 * width])
        for i, byte in enumerate(line):
            left, up = line[i - 3] if i > 2 else 0, before[i]
            assert how in (0, 1, 2), f"filter {how}"
            line[i] = (byte + (0, left, up)[how]) & 255
        before = bytes(line)
        lines.append(before)
    return lines


@pytest.fixture(scope="module")
def visitor(recipe):
    recipe.cover("/srv", empty=True)
    recipe.cover("/etc")
    os.mkdir("/srv/maps")
    for name, text in (("islands.map", MAP), ("island.json", ISLAND)):
        with open(f"/srv/maps/{name}", "w") as file:
            file.write(text)
    recipe.page.write("CONFIG", "/etc/mapserver.conf")
    recipe.start()
    return recipe.visitor(HOST)


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_capabilities(visitor):
    answer = visitor.get("/?map=ISLANDS&SERVICE=WMS&REQUEST=GetCapabilities")
    assert answer.status == 200 and "<Title>The island</Title>" in answer.text, answer
    assert answer.headers["Content-Type"].startswith("text/xml")


def test_image(visitor):
    for _ in range(10):  # by the same processes
        answer = visitor.get(GET_MAP)
        assert answer.headers["Content-Type"] == "image/png", answer
        lines = pixels(answer.body)
        assert len(lines) == 100 and lines[5] == BLUE * 200
        assert lines[50][:3] == BLUE and lines[50][300:303] == RED


def test_large_image(visitor):
    answer = visitor.get(GET_MAP.replace("WIDTH=200&HEIGHT=100", "WIDTH=2000&HEIGHT=1000"))
    assert answer.body[16:24] == struct.pack(">II", 2000, 1000)


def test_query_by_form(visitor):
    """The same as a form, in the body of a request."""
    answer = visitor.request("POST", "/?map=ISLANDS", GET_MAP.partition("&")[2].encode(),
                             headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert answer.body[:4] == b"\x89PNG", answer


def test_features(visitor):
    answer = visitor.get(GET_MAP.replace("GetMap", "GetFeatureInfo")
                         + "&QUERY_LAYERS=island&X=100&Y=50&INFO_FORMAT=text/plain")
    assert "Avalon" in answer.text, answer
    question = """<wfs:GetFeature service="WFS" version="1.1.0" xmlns:wfs="http://www.opengis.net/wfs">
        <wfs:Query typeName="island"/></wfs:GetFeature>"""
    answer = visitor.request("POST", "/?map=ISLANDS", question.encode(),
                             headers={"Content-Type": "text/xml"})
    assert "Avalon" in answer.text, answer


def test_other_maps(visitor):
    for path in ("/?map=/srv/maps/islands.map&mode=map", "/?map=/etc/passwd&mode=map", "/?map=NONE"):
        answer = visitor.get(path)
        assert "image" not in answer.headers["Content-Type"] and "root:" not in answer.text, answer
