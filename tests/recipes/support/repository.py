# SPDX-License-Identifier: MIT
"""A repository at /srv/git/one.git, for programs that show it."""

import os
import re
import urllib.parse

from files import pattern

IMAGE = bytes(range(256)) * 300  # of no known type, and no text
TEXT = "int main(void)\n{\n\treturn 42 < 43; /* äöü */\n}\n"


def make(recipe):
    """Two commits; the user of the server owns it, as git wants."""
    recipe.cover("/srv", empty=True)
    work = recipe.folder / "work"

    def git(*arguments):
        recipe.run("git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", *arguments,
                   cwd=work)

    work.mkdir()
    git("init", "-q", "-b", "main")
    (work / "sub folder").mkdir()
    (work / "main.c").write_text(TEXT.replace("42", "41"))
    (work / "sub folder" / "image.bin").write_bytes(IMAGE)
    (work / "long.txt").write_bytes(b"\n".join(pattern(50, number) .hex().encode()
                                               for number in range(20000)))
    git("add", ".")
    git("commit", "-q", "-m", "Begin with <angle> brackets")
    git("tag", "v1")
    (work / "main.c").write_text(TEXT)
    git("commit", "-q", "-a", "-m", "Return another number")
    git("clone", "-q", "--bare", work, "/srv/git/one.git")
    with open("/srv/git/one.git/description", "w") as file:
        file.write("The repository of a test\n")
    recipe.run("chown", "-R", "nobody", "/srv/git")
    assert os.path.exists("/srv/git/one.git/packed-refs")


def follow(visitor, start, most):
    """Visits pages and what their links below `start` lead to, at most that many; returns their
    paths."""
    seen, left = set(), [start]
    while left and len(seen) < most:
        path = left.pop(0)
        seen.add(path)
        # As a browser does with what a link must not have.
        page = visitor.get(urllib.parse.quote(path, "/%?=;:+&,@-"))
        assert page.status == 200, page
        if "html" not in page.headers["Content-Type"]:
            continue
        text = page.text.replace("&amp;", "&").replace(visitor.url, "")
        found = re.findall(rf"""href=["']({re.escape(start)}[^"'#]*)["']""", text)
        left += [link for link in dict.fromkeys(found) if link not in {*seen, *left}]
    return seen
