# SPDX-License-Identifier: MIT
"""doc/recipes/debian-mirror.md: a signed repository, from which apt gets indexes and packages."""

import email.utils
import gzip
import hashlib
import os
import shutil
import time

import pytest

import applications
from files import MB, pattern
from recipe import is_short

# gist.github.com/zedtux/9065042, "Nginx configuration for reprepro", which leaves its folders open.
NGINX = 8
HOST = "deb.example.org"
TOP = "/srv/mirror"
INDEX = "dists/stable/main/binary-amd64"
SIZES = {"small": 100, "other": 1000, "large": 12 * MB}
SUMS = """\
APT::FTPArchive::Release {
  Origin "Test"; Suite "stable"; Codename "stable"; Architectures "amd64"; Components "main";
  Acquire-By-Hash "yes";
};
"""


class Repository:
    def __init__(self, recipe):
        self.recipe = recipe
        self.run = recipe.run
        self.home = recipe.folder / "gnupg"
        self.when = time.time() - 3600
        self.home.mkdir(mode=0o700)
        self.gpg("--quick-generate-key", "--passphrase", "", "test@example.org", "rsa2048")
        self.gpg("--output", "/etc/apt/test.gpg", "--export", "test@example.org")
        applications.write(recipe.folder / "release.conf", SUMS)

    def gpg(self, *arguments):
        self.run("gpg", "--homedir", self.home, "--batch", "--yes", *arguments)

    def add(self, name, version, size):
        """Puts a package with one file into the pool."""
        tree = self.recipe.folder / "tree" / name
        shutil.rmtree(tree, ignore_errors=True)
        data = pattern(size, seed=name)
        applications.write(f"{tree}/usr/share/{name}/data", data)
        applications.write(f"{tree}/DEBIAN/control",
                           f"Package: {name}\nVersion: {version}\nArchitecture: all\n"
                           "Maintainer: Test <test@example.org>\nDescription: of a test\n")
        place = f"{TOP}/pool/main/{name}"
        os.makedirs(place, exist_ok=True)
        # Without compression, so that the large one is large.
        self.run("dpkg-deb", "-Znone", "--build", "--root-owner-group", tree,
                 f"{place}/{name}_{version}_all.deb")

    def publish(self):
        """Makes the indexes, also by their hashes, and signs them."""
        # The strongest, which apt uses.
        os.makedirs(f"{TOP}/{INDEX}/by-hash/SHA512", exist_ok=True)
        index = self.run("apt-ftparchive", "packages", "pool", cwd=TOP)
        applications.write(f"{TOP}/{INDEX}/Packages", index)
        applications.write(f"{TOP}/{INDEX}/Packages.gz", gzip.compress(index.encode()))
        self.run("xz", "-kf", "Packages", cwd=f"{TOP}/{INDEX}")
        for name in ("Packages", "Packages.gz", "Packages.xz"):
            with open(f"{TOP}/{INDEX}/{name}", "rb") as file:
                digest = hashlib.sha512(file.read()).hexdigest()
            shutil.copy(f"{TOP}/{INDEX}/{name}", f"{TOP}/{INDEX}/by-hash/SHA512/{digest}")
        release = self.run("apt-ftparchive", "-c", self.recipe.folder / "release.conf", "release",
                           "dists/stable", cwd=TOP)
        applications.write(f"{TOP}/dists/stable/Release", release)
        self.gpg("--clearsign", "--output", f"{TOP}/dists/stable/InRelease",
                 f"{TOP}/dists/stable/Release")
        # apt asks by time, of which HTTP has whole seconds.
        self.when += 60
        for folder, _, files in os.walk(f"{TOP}/dists"):
            for name in files:
                os.utime(f"{folder}/{name}", (self.when, self.when))


class Apt:
    """apt with all its folders in one of the test."""

    def __init__(self, recipe, top):
        self.recipe, self.top = recipe, top
        for name in ("lists/partial", "archives/partial", "etc", "downloads"):
            (top / name).mkdir(parents=True)
        (top / "status").write_text("")
        (top / "sources.list").write_text(
            f"deb [signed-by=/etc/apt/test.gpg] http://{HOST}:{recipe.server.port}/ stable main\n")

    def __call__(self, *arguments):
        settings = {"Dir::Etc::sourcelist": self.top / "sources.list", "Dir::Etc::sourceparts": "-",
                    "Dir::State::lists": self.top / "lists", "Dir::State::status": self.top / "status",
                    "Dir::Cache": self.top, "Dir::Cache::archives": self.top / "archives",
                    "Dir::Cache::pkgcache": "", "Dir::Cache::srcpkgcache": "",
                    "APT::Architecture": "amd64", "APT::Architectures::": "amd64",
                    "APT::Sandbox::User": "root", "Acquire::http::Proxy": "DIRECT",
                    "Acquire::Retries": "0", "Acquire::Languages": "none",
                    "APT::Update::Post-Invoke": "", "APT::Update::Post-Invoke-Success": "",
                    "Debug::Acquire::http": "true", "Dpkg::Use-Pty": "0"}
        options = [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]
        return self.recipe.run("apt-get", *options, *arguments, cwd=self.top / "downloads")


@pytest.fixture(scope="module")
def repository(recipe):
    applications.folders(recipe, TOP)
    recipe.cover("/etc")
    with open("/etc/hosts", "a") as hosts:
        hosts.write(f"\n127.0.0.1 {HOST}\n")
    made = Repository(recipe)
    for name, size in SIZES.items():
        made.add(name, "1.0", size)
    made.publish()
    applications.write(f"{TOP}/conf/distributions", "Codename: stable\n")
    applications.write(f"{TOP}/db/packages.db", "secret")
    recipe.start()
    yield made
    made.run("gpgconf", "--homedir", made.home, "--kill", "all")


@pytest.fixture
def apt(repository, recipe, tmp_path):
    made = Apt(recipe, tmp_path)
    made("update")
    return made


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_update(apt):
    assert list((apt.top / "lists").glob("*_InRelease"))
    assert list((apt.top / "lists").glob("*_Packages*"))
    said = apt("update")
    assert "HTTP/1.1 304" in said and "Hit:1" in said and "Get:" not in said, said


def test_indexes_by_hash(apt, repository):
    repository.add("newer", "1.0", 10)
    repository.publish()
    said = apt("update")
    assert "/by-hash/SHA512/" in said and "Get:" in said, said
    apt("download", "newer")


def test_packages(apt):
    """Several at once, which apt asks for without waiting for the first."""
    said = apt("download", *SIZES)
    assert said.count("HTTP/1.1 200") == len(SIZES), said
    for name in SIZES:
        file = f"{name}_1.0_all.deb"
        with open(apt.top / "downloads" / file, "rb") as got, \
                open(f"{TOP}/pool/main/{name}/{file}", "rb") as wanted:
            assert got.read() == wanted.read(), file


def test_many_packages(apt, repository):
    names = [f"many{number}" for number in range(40)]
    for name in names:
        repository.add(name, "1.0", 3000)
    repository.publish()
    apt("update")
    assert apt("download", *names).count("HTTP/1.1 200") == len(names)
    assert len(list((apt.top / "downloads").iterdir())) == len(names)


def test_resumed_download(apt):
    """apt asks for the rest of a package, if the package has not changed."""
    source = f"{TOP}/pool/main/large/large_1.0_all.deb"
    whole = open(source, "rb").read()
    for changed in (False, True):
        partial = apt.top / "archives" / "partial" / "large_1.0_all.deb"
        partial.write_bytes(bytes(MB) if changed else whole[:5 * MB])
        when = os.stat(source).st_mtime - changed * 1000
        os.utime(partial, (when, when))
        said = apt("-y", "--download-only", "install", "large")
        assert f"HTTP/1.1 {200 if changed else 206}" in said, said
        got = apt.top / "archives" / "large_1.0_all.deb"
        assert got.read_bytes() == whole
        got.unlink()


def test_fields(repository, recipe):
    visitor = recipe.visitor(HOST)
    package = visitor.get("/pool/main/small/small_1.0_all.deb")
    assert package.headers["Content-Type"] == "application/vnd.debian.binary-package"
    assert package.headers["Cache-Control"] == "max-age=31536000"
    for name in ("InRelease", "Release", "main/binary-amd64/Packages.gz", "main/binary-amd64/Packages"):
        answer = visitor.get(f"/dists/stable/{name}", headers={"Accept-Encoding": "gzip"})
        assert answer.status == 200 and answer.headers["Cache-Control"] == "no-cache", answer
        # The file is what is asked for, not a form of another.
        assert "Content-Encoding" not in answer.headers and "ETag" in answer.headers, answer
        with open(f"{TOP}/dists/stable/{name}", "rb") as file:
            assert answer.body == file.read()
            modified = email.utils.formatdate(os.fstat(file.fileno()).st_mtime, usegmt=True)
        assert answer.headers["Last-Modified"] == modified


def test_folders(repository, recipe):
    visitor = recipe.visitor(HOST)
    assert "dists/" in visitor.get("/").text and "pool/" in visitor.get("/").text
    assert "small_1.0_all.deb" in visitor.get("/pool/main/small/").text
    for path in ("/conf/distributions", "/db/packages.db", "/conf/", "/db", "/pool/../db/packages.db"):
        assert visitor.get(path).status == 403, path
