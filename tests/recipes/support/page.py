# SPDX-License-Identifier: MIT
"""A page of doc/recipes/: the packages that it names, and its configuration, so that the tests use
what is documented.  The test runner reads the pages, too."""

import glob
import os
import re
import textwrap

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
FOLDER = os.path.join(TOP, "doc", "recipes")
INSTALL = "    apt-get install --no-install-recommends "
# Pages of applications that Debian does not have.
NOT_TESTED = {"nextcloud"}
# Pages whose applications need no package.
WITHOUT_PACKAGES = {"single-page-application"}


class Page:
    def __init__(self, name):
        self.name = name
        with open(os.path.join(FOLDER, f"{name}.md")) as file:
            self.text = file.read()

    @property
    def packages(self):
        """The packages of the command that installs them."""
        lines = [line for line in self.text.splitlines() if line.startswith(INSTALL)]
        return [word for line in lines for word in line.removeprefix(INSTALL).split()]

    @property
    def configuration(self):
        blocks = self.blocks("ini")
        assert len(blocks) == 1, f"doc/recipes/{self.name}.md has {len(blocks)} blocks of ini"
        return blocks[0]

    def blocks(self, language):
        return re.findall(rf"^```{language}\n(.*?)^```$", self.text, re.M | re.S)

    def write(self, first, path):
        """Writes a block of the page that is indented, and begins with a line that has this text,
        to a file."""
        blocks = re.findall(r"^    .*\n(?:\n*    .*\n)*", self.text, re.M)
        found = [block for block in blocks if first in block.splitlines()[0]]
        assert len(found) == 1, f"doc/recipes/{self.name}.md has {len(found)} blocks with {first}"
        with open(path, "w") as file:
            file.write(textwrap.dedent(found[0]))

    def lines(self):
        """The number of lines of the configuration, without those that are empty or comments."""
        return sum(bool(line.strip()) and not line.startswith("#")
                   for line in self.configuration.splitlines())


def names():
    found = glob.glob(os.path.join(FOLDER, "*.md"))
    return sorted(os.path.basename(path).removesuffix(".md") for path in found
                  if not path.endswith("README.md"))


def packages():
    """The packages of all pages that are tested."""
    return sorted({word for name in names() if name not in NOT_TESTED
                   for word in Page(name).packages})
