"""Released wheels as planning sees them, on wheels made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.dists import damage_member, keep_wheel, make_wheel

from patchkit.author.published import (
    Listing,
    WheelFiles,
    cached_between,
    folder_size,
    get_wheel,
    list_versions,
    opened_wheel,
    select,
    wheel_folder,
)
from patchkit.errors import PlanError, SiteError, UsageError
from patchkit.site.environment import resolve


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache, empty."""
    monkeypatch.setenv("PATCHKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


# --- files


def test_files_are_named_as_they_are_installed(tmp_path: Path) -> None:
    files = {
        "demo/a.py": "a = 1\n",
        "demo-1.0.data/purelib/demo/b.py": "b = 2\n",
        "demo-1.0.data/scripts/run": "#!python\n",
    }
    wheel = make_wheel(tmp_path, "demo", "1.0", files)
    with opened_wheel(str(wheel), "demo", "1.0") as found:
        assert isinstance(found, WheelFiles)
        assert found.read("demo/a.py", wanted_by=lambda: "x") == b"a = 1\n"
        assert found.read("demo/b.py", wanted_by=lambda: "x") == b"b = 2\n"
        assert [path for path, _ in found.siblings()] == ["demo/a.py", "demo/b.py"]
        with pytest.raises(PlanError, match=r"^x: demo 1\.0 has no file demo/c\.py$"):
            found.read("demo/c.py", wanted_by=lambda: "x")


def test_what_is_put_is_read_from_then_on(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0", {"demo/a.py": "a = 1\n"})
    with opened_wheel(str(wheel), "demo", "1.0") as found:
        assert found.text("demo/a.py").source.text == "a = 1\n"
        found.put("demo/a.py", b"a = 2\n")
        found.put("demo/new.py", b"b = 1\n")
        assert found.text("demo/a.py").source.text == "a = 2\n"
        assert dict(found.siblings()) == {"demo/a.py": b"a = 2\n", "demo/new.py": b"b = 1\n"}


def test_no_wheel_at_all(tmp_path: Path) -> None:
    (tmp_path / "demo-1.0-py3-none-any.whl").write_bytes(b"no zip")
    (tmp_path / "folder.whl").mkdir()
    for name in ("demo-1.0-py3-none-any.whl", "folder.whl", "missing.whl"):
        with (
            pytest.raises(SiteError, match="cannot be read") as caught,
            opened_wheel(str(tmp_path / name), "demo", "1"),
        ):
            pass
        assert caught.value.code == "fetch"


def test_a_file_that_no_source_is_as_large_as_is_no_sibling(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0", {"demo/a.py": "a = 1\n", "demo/big.py": bytes(65 << 20)})
    damage_member(wheel, "demo/big.py", "checksum")  # packed, so that it is small on the disk
    with opened_wheel(str(wheel), "demo", "1.0") as found:
        assert [path for path, _ in found.siblings()] == ["demo/a.py"]
        with pytest.raises(SiteError, match="larger than 64 MiB"):
            found.data("demo/big.py")


@pytest.mark.parametrize(
    ("python", "remark"),
    [
        (b"Requires-Python: >=3.9\n", None),
        (b"requires-python:  >=99\n", "it is for Python >=99; read here by the grammar of "),
        (b"Requires-Python: what\n", None),
        (b"\nRequires-Python: >=99\n", None),
    ],
)
def test_the_python_that_a_release_is_for(tmp_path: Path, python: bytes, remark: str | None) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0", {})
    with opened_wheel(str(wheel), "demo", "1.0") as found:
        path = "demo-1.0.dist-info/METADATA"
        found.put(path, found.data(path) + python)
        said = found.foreign_python()
    assert said is None if remark is None else str(said).startswith(remark)


def test_a_site_without_an_interpreter_judges_by_its_own_version(tmp_path: Path) -> None:
    folder = tmp_path / "lib" / "python3.9" / "site-packages"
    folder.mkdir(parents=True)
    wheel = make_wheel(tmp_path, "demo", "1.0", {"demo/a.py": "match 1:\n    case _: pass\n"})
    with opened_wheel(str(wheel), "demo", "1.0", resolve(directory=str(folder))) as found:
        assert found.grammar.judge({"demo/a.py": found.data("demo/a.py")}) != {}
    with opened_wheel(str(wheel), "demo", "1.0") as found:
        assert found.grammar.judge({"demo/a.py": found.data("demo/a.py")}) == {}


# --- the cache


def test_without_asking_the_index_the_cache_is_what_there_is(cache: Path) -> None:
    with pytest.raises(SiteError, match=r"the cache has no release of demo, and the index may not be asked"):
        list_versions("demo", offline=True)
    for version in ("1.10", "1.9", "2.0rc1"):
        keep_wheel(cache, "demo", version, {})
    listing = list_versions("demo", offline=True)
    assert (listing.versions, listing.offline) == (
        ("1.9", "1.10", "2.0rc1"),
        "the index was not asked (--offline)",
    )
    assert get_wheel("demo", "1.9", offline=True) == str(cache / "wheels/demo/1.9/demo-1.9-py3-none-any.whl")
    with pytest.raises(
        SiteError, match=r"demo 3\.0 is not in the cache.*; the cache has 1\.9, 1\.10, 2\.0rc1"
    ) as caught:
        get_wheel("demo", "3.0", offline=True)
    assert caught.value.details["cached"] == ["1.9", "1.10", "2.0rc1"]


def test_the_releases_in_between_are_final_and_hold_their_hash(cache: Path) -> None:
    for version in ("1.0", "1.1", "1.2rc1", "1.2", "1.3", "2.0"):
        keep_wheel(cache, "demo", version, {})
    with open(cache / "wheels/demo/1.2/demo-1.2-py3-none-any.whl", "ab") as file:
        file.write(b"x")
    assert cached_between("demo", "1.0", "2.0") == ["1.3", "1.1"]
    assert cached_between("demo", "2.0", "1.0") == []


def test_the_size_of_the_cache(cache: Path) -> None:
    assert (wheel_folder(), wheel_folder("De_mo")) == (str(cache / "wheels"), str(cache / "wheels" / "de-mo"))
    assert folder_size(wheel_folder("demo")) == 0
    wheel = keep_wheel(cache, "demo", "1.0", {})
    assert folder_size(wheel_folder("demo")) == wheel.stat().st_size + 64  # and a SHA-256 in hexadecimal


# --- which releases

LISTING = Listing("demo", ("0.9", "1.0", "1.1", "1.2", "2.0", "2.1rc1"), None)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["2.0", "1.2", "1.1", "1.0", "0.9"]),
        ({"pre": True}, ["2.1rc1", "2.0", "1.2", "1.1", "1.0", "0.9"]),
        ({"limit": 1}, ["2.0"]),
        ({"limit": 1, "requirement": "<1.2"}, ["2.0", "1.1"]),
        ({"limit": 1, "requirement": ">=9"}, ["2.0"]),
        ({"newer_only": True, "requirement": ">=1.1,<2"}, ["2.0", "1.2", "1.1"]),
        ({"versions": "<1.2", "limit": 1}, ["1.1", "1.0", "0.9"]),
    ],
)
def test_the_releases_to_look_at(options: dict[str, object], expected: list[str]) -> None:
    given = {"versions": None, "pre": False, "limit": 0, "requirement": "", **options}
    assert select(LISTING, **given) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("versions", "said"), [("new", "is not a version specifier"), (">2", "no release of demo is >2")]
)
def test_what_selects_nothing_is_wrong_use(versions: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        select(LISTING, versions=versions, pre=False, limit=0, requirement="")
