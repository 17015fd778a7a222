from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from support.dists import make_dist, make_egg_info, record_hash

from patchkit.errors import SiteError
from patchkit.site.distribution import find_distribution
from patchkit.site.environment import Site
from patchkit.site.record import CONFLICTING, Entry, Record

# sha256 of b"x = 1\n", by sha256sum and base64
DATA = b"x = 1\n"
HASH = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(DATA).digest()).decode().rstrip("=")


def _record(text: str | bytes) -> Record:
    return Record("/base", "/base/RECORD", data=text.encode() if isinstance(text, str) else text)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_a_row_is_found_first_in_the_middle_and_last(newline: str, last: bool) -> None:
    rows = [f"pkg/{name}.py,{HASH},6" for name in "abc"]
    record = _record(newline.join(rows) + (newline if last else ""))
    for name in "abc":
        entry = record.entry(f"pkg/{name}.py")
        assert entry == Entry(f"pkg/{name}.py", "sha256", hashlib.sha256(DATA).digest(), 6)
        assert entry.matches(DATA) is True
        assert entry.matches(b"x = 2\n") is False
    assert record.entry("pkg/d.py") is None
    assert record.entry("kg/a.py") is None
    assert record.entry("pkg/a.p") is None
    assert record.entry("pkg/A.py") is None
    assert list(record.entries()) == ["pkg/a.py", "pkg/b.py", "pkg/c.py"]


@pytest.mark.parametrize(
    "path", ["a/E=8,device_name=H100.json", 'a/say "hi".py', "a/naïve/日本.py", "a/ leading space.py"]
)
@pytest.mark.parametrize("parsed", [False, True])
def test_quoted_and_non_ascii_rows(packages: Path, site: Site, path: str, parsed: bool) -> None:
    make_dist(packages, "pkg", "1.0", {"a/b.py": "", path: DATA}, newline="\r\n")
    found = find_distribution(site, "pkg")
    assert found is not None
    if parsed:
        found.record.entries()
    entry = found.record.entry(path)
    assert entry is not None
    assert (entry.matches(DATA), entry.size) == (True, 6)


@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
def test_secure_algorithms_are_witnesses(algorithm: str) -> None:
    entry = _record(f"a.py,{record_hash(DATA, algorithm)},6\n").entry("a.py")
    assert entry is not None
    assert (entry.algorithm, entry.matches(DATA), entry.matches(b"")) == (algorithm, True, False)


@pytest.mark.parametrize(
    ("field", "algorithm"),
    [
        (record_hash(DATA, "md5"), "md5"),
        (record_hash(DATA, "sha1"), "sha1"),
        ("whirlpool=abc", "whirlpool"),
        ("sha256=tooshort", "sha256"),
        ("sha256=", "sha256"),
        ("sha256=é" + "a" * 42, "sha256"),
        ("", None),
        ("nonsense", None),
    ],
)
def test_other_hash_fields_are_no_witness(field: str, algorithm: str | None) -> None:
    entry = _record(f"a.py,{field},6\n").entry("a.py")
    assert entry is not None
    assert (entry.algorithm, entry.digest, entry.matches(DATA)) == (algorithm, None, None)


@pytest.mark.parametrize(
    "value",
    [
        base64.urlsafe_b64encode(hashlib.sha256(DATA).digest()).decode(),
        base64.b64encode(hashlib.sha256(DATA).digest()).decode(),
        hashlib.sha256(DATA).hexdigest(),
        hashlib.sha256(DATA).hexdigest().upper(),
    ],
)
def test_padded_standard_and_hex_digests_are_understood(value: str) -> None:
    entry = _record(f"a.py,sha256={value},6\n").entry("a.py")
    assert entry is not None
    assert entry.matches(DATA) is True


@pytest.mark.parametrize("parsed", [False, True])
def test_duplicate_rows(parsed: bool) -> None:
    other = record_hash(b"other")
    record = _record(
        f"same.py,{HASH},6\nsame.py,{HASH},6\nempty.py,,\nempty.py,{HASH},6\nbad.py,{HASH},6\nbad.py,{other},5\n"
    )
    if parsed:
        record.entries()
    same, empty, bad = (record.entry(name) for name in ("same.py", "empty.py", "bad.py"))
    assert same is not None
    assert same.matches(DATA) is True
    assert empty is not None
    assert empty.matches(DATA) is True
    assert bad == Entry("bad.py", CONFLICTING)
    assert bad.matches(DATA) is None


def test_rows_outside_and_absolute_are_listed_but_no_files_of_it(packages: Path, site: Site) -> None:
    make_dist(
        packages,
        "pkg",
        "1.0",
        {"pkg/a.py": "", "pkg/data.txt": ""},
        extra_rows=[("../../../bin/pkg.py", "", ""), ("/etc/pkg.py", "", ""), ("pkg/ghost.py", HASH, "6")],
    )
    found = find_distribution(site, "pkg")
    assert found is not None
    assert "../../../bin/pkg.py" in found.record.paths()
    assert "/etc/pkg.py" in found.record.paths()
    assert found.record.files() == ["pkg/a.py"]


def test_odd_rows_do_not_disturb() -> None:
    record = _record(
        b"\xef\xbb\xbffirst.py," + HASH.encode() + b",6\n\n,,\nonly\n./dotted.py,,\nlast.py,,x\n\xff.py,,\n"
    )
    first = record.entry("first.py")
    assert first is not None
    assert first.size == 6
    assert record.entry("last.py") == Entry("last.py")
    assert record.entry("dotted.py") == Entry("dotted.py")
    assert record.paths() == ["first.py", "only", "dotted.py", "last.py", "\udcff.py"]


def test_a_record_that_is_no_csv_is_named() -> None:
    with pytest.raises(SiteError, match="/base/RECORD"):
        _record('"' + "x" * 200_000 + '",,\n').entries()


def test_installed_files_of_an_egg_info(packages: Path, site: Site) -> None:
    listed = "../pkg/__init__.py\n../pkg/a.py\nPKG-INFO\n../../../../bin/tool\n"
    make_egg_info(
        packages, "pkg", "1.0", {"pkg/__init__.py": "", "pkg/a.py": "", "pkg/stray.py": ""},
        lists={"installed-files.txt": listed, "top_level.txt": "pkg\n"},
    )  # fmt: skip
    found = find_distribution(site, "pkg")
    assert found is not None
    assert found.record.paths() == [
        "pkg/__init__.py",
        "pkg/a.py",
        "pkg-1.0-py3.11.egg-info/PKG-INFO",
        "../../../bin/tool",
    ]
    assert not found.record.has_hashes
    entry = found.record.entry("pkg/a.py")
    assert entry is not None
    assert entry.matches(b"") is None


def test_sources_of_an_egg_info(packages: Path, site: Site) -> None:
    make_egg_info(
        packages, "pkg", "1.0", {"pkg/a.py": "", "single.py": "", "setup.py": ""},
        lists={"SOURCES.txt": "setup.py\nsrc/pkg/a.py\npkg/not_installed.py\nsingle.py\n",
               "top_level.txt": "pkg\nsingle\n"},
    )  # fmt: skip
    found = find_distribution(site, "pkg")
    assert found is not None
    assert found.record.paths() == ["pkg/a.py", "single.py"]


def test_top_level_and_the_directory_of_the_name(packages: Path, site: Site) -> None:
    make_egg_info(packages, "lister", "1.0", {"tops/a.py": "", "tops/sub/b.txt": "", "tops/__pycache__/a.pyc": ""},
                  lists={"top_level.txt": "tops\n"})  # fmt: skip
    make_egg_info(packages, "Flat-Name", "1.0", {"flat_name/a.py": ""}, directory=False)
    make_dist(packages, "no-list", "1.0", {"no_list/a.py": ""}, record=False)
    paths = {one.name: one.record.paths() for one in site.distributions()}
    assert paths == {
        "lister": ["tops/a.py", "tops/sub/b.txt"],
        "Flat-Name": ["flat_name/a.py"],
        "no-list": ["no_list/a.py"],
    }


@pytest.mark.parametrize("path", ["../outside.py", "/elsewhere/a.py", "../../bin/tool", "C:/Python/a.py"])
def test_a_row_that_leads_out_keeps_its_spelling(path: str) -> None:
    assert _record(f"{path},,\n").paths() == [path]


@pytest.mark.parametrize(
    "path", ["./pkg/a.py", "pkg//a.py", "pkg/./a.py", "pkg/sub/../a.py", "../base/pkg/a.py", "/base/pkg/a.py"]
)
def test_a_row_that_leads_in_is_named_plainly(path: str) -> None:
    record = _record(f"{path},{HASH},6\n")
    assert record.paths() == ["pkg/a.py"]
    entry = record.entry("pkg/a.py")
    assert entry is not None
    assert entry.matches(DATA) is True


def test_a_backslash_is_a_separator_only_where_that_leads_to_a_file(packages: Path) -> None:
    (packages / "pkg").mkdir()
    (packages / "pkg" / "a.py").write_bytes(DATA)
    (packages / "odd\\name.py").write_bytes(DATA)
    record = Record(str(packages), None, data=b"pkg\\a.py,,\nodd\\name.py,,\nno\\where.py,,\n")
    assert record.paths() == ["pkg/a.py", "odd\\name.py", "no\\where.py"]


@pytest.mark.parametrize(
    ("field", "fault"),
    [
        (HASH, None),
        ("", None),
        ("md5=abc", None),
        ("whirlpool=abc", None),
        (HASH[:20], "has a damaged sha256 hash for it"),
        ("sha512=", "has a damaged sha512 hash for it"),
    ],
)
def test_what_is_wrong_with_a_row(field: str, fault: str | None) -> None:
    entry = _record(f"a.py,{field},6\n").entry("a.py")
    assert entry is not None
    assert entry.fault == fault


def test_rows_with_different_algorithms_contradict_each_other() -> None:
    record = _record(f"a.py,{HASH},6\na.py,{record_hash(DATA, 'sha512')},6\n")
    entry = record.entry("a.py")
    assert entry is not None
    assert entry.fault == "lists it more than once, with different hashes"
