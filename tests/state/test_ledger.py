from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from state.sites import Draft, entry_for, patch_entry
from support.sites import bare_site

from patchkit.edit.source import ByteSplice
from patchkit.errors import InternalError, SiteError
from patchkit.runtime import ledger as reader
from patchkit.runtime.ledger import key_of
from patchkit.site.paths import key_of as site_key_of
from patchkit.state.ledger import (
    Content,
    FileEntry,
    Layer,
    Ledger,
    Pristine,
    Stat,
    Upstreamed,
    beneath,
    dirs_after,
    dumps,
    from_json,
    layers_of,
    save,
    scripts_of,
)

FULL = (
    Draft()
    .with_patch(patch_entry("one", ["pkg/a.py"]))
    .with_patch(patch_entry("two", ["pkg/a.py", "/outside/b.py"])._replace(source=None, info=None, optional=True))
    .with_file(
        "pkg/a.py",
        FileEntry(
            "pkg",
            Pristine("0" * 64, 3, 0o644, 12),
            "record",
            Content("1" * 64, 4),
            (Layer("one", ((0, 1, "YWI=", "eA=="),)), Layer("two", ((1, 1, 3, None),))),
            Stat(4, 5, 6, 7),
            (),
        ),
    )
    .with_file("/outside/b.py", FileEntry("pkg", None, "none", Content("2" * 64, 0), created_dirs=("/outside",)))
    .with_upstreamed(Upstreamed("three", "pkg", "1.0", "pkg-1.0.dist-info", "3" * 64))
    ._replace(tx="abc")
)


def written(home: Path, ledger: Ledger = FULL) -> Path:
    (home / ".patchkit").mkdir()
    save(str(home), ledger)
    return home / ".patchkit" / "ledger.json"


def test_none_is_empty(tmp_path: Path) -> None:
    assert Ledger.load(str(tmp_path)) == Draft()
    assert Draft().empty
    assert Ledger.load(str(tmp_path / "absent")).empty


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    written(tmp_path)
    assert Ledger.load(str(tmp_path)) == FULL


def test_on_disk_it_is_plain_json_with_one_line_per_patch_and_file(tmp_path: Path) -> None:
    path = written(tmp_path)
    text = path.read_text()
    value = json.loads(text)
    assert list(value) == sorted(value)
    assert value["schema"] == 1
    assert [entry["name"] for entry in value["patches"]] == ["one", "two"]
    assert sum(1 for line in text.splitlines() if '"name": "one"' in line) == 1
    assert [line.split('"')[1] for line in text.splitlines() if '"witness"' in line] == ["/outside/b.py", "pkg/a.py"]
    assert value["files"]["pkg/a.py"]["layers"][0] == {"patch": "one", "splices": [[0, 1, "YWI=", "eA=="]]}


def test_every_single_damaged_byte_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path)
    good = path.read_bytes()
    for at in range(len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x01]) + good[at + 1 :])
        with pytest.raises(SiteError) as raised:
            Ledger.load(str(tmp_path))
        assert raised.value.code in ("corrupt", "ledger-version")


def test_a_torn_ledger_names_the_patches_on_its_intact_lines(tmp_path: Path) -> None:
    path = written(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b'"schema"')])
    with pytest.raises(SiteError) as raised:
        Ledger.load(str(tmp_path))
    assert raised.value.code == "corrupt"
    assert [item["name"] for item in raised.value.details["salvaged"]] == ["one", "two"]
    again = f"pip install --target {tmp_path} --upgrade --no-deps --no-cache-dir pkg==1.0"
    assert again in (raised.value.hint or "")
    assert "patchkit apply one two" in (raised.value.hint or "")
    assert "RECORD" in (raised.value.hint or "")


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"\xff\xfe", b"{}", b'{"schema": "1"}', b'{"schema": 1}', b"null", b"[" * 100_000]
)
def test_no_ledger_at_all_is_corrupt(tmp_path: Path, data: bytes) -> None:
    written(tmp_path).write_bytes(data)
    with pytest.raises(SiteError) as raised:
        Ledger.load(str(tmp_path))
    assert raised.value.code == "corrupt"


def test_a_newer_schema_is_refused_by_name(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(dumps({**FULL.to_json(), "schema": 2, "new": {}}))
    with pytest.raises(SiteError, match="newer patchkit") as raised:
        Ledger.load(str(tmp_path))
    assert raised.value.code == "ledger-version"


def test_a_member_of_the_wrong_kind_is_corrupt(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(dumps({**FULL.to_json(), "files": {"pkg/a.py": {"distribution": "pkg"}}}))
    with pytest.raises(SiteError) as raised:
        Ledger.load(str(tmp_path))
    assert raised.value.code == "corrupt"


def test_the_upstreamed_leave_the_old_ledger_alone() -> None:
    again = FULL.with_upstreamed(Upstreamed("other", "pkg", "2.0", None, "0" * 64))
    assert [entry.name for entry in again.upstreamed][-1] == "other"
    assert len(again.upstreamed) == len(FULL.upstreamed) + 1
    assert again.without_upstreamed("other") == FULL
    assert FULL.patch("nobody") is None


def test_blobs_are_pristine_and_patched_bytes_and_patch_files() -> None:
    toml = patch_entry("one", []).digest
    assert FULL.blobs() == {toml, "0" * 64, "1" * 64, "2" * 64}


def test_keys() -> None:
    assert key_of("/v/site-packages", "/v/site-packages/a/b.py") == "a/b.py"
    assert key_of("/v/site-packages", "/v/site-packages-2/b.py") == "/v/site-packages-2/b.py"
    assert reader.file_path("/v/site-packages", "a/b.py") == "/v/site-packages/a/b.py"
    assert reader.file_path("/v/site-packages", "/v/bin/x") == "/v/bin/x"


def test_one_file_has_one_key_whatever_its_name(tmp_path: Path) -> None:
    home = tmp_path / "lib" / "site-packages"
    (home / "pkg" / "real").mkdir(parents=True)
    (home / "pkg" / "real" / "a.py").write_text("")
    (home / "pkg" / "linked").symlink_to("real", target_is_directory=True)
    (home / "pkg" / "real" / "b.py").symlink_to("a.py")
    (tmp_path / "lib64").symlink_to("lib", target_is_directory=True)
    other = tmp_path / "lib64" / "site-packages"
    for place in (home, other):
        for root in (home, other):
            assert key_of(str(root), str(place / "pkg/real/a.py")) == "pkg/real/a.py"
            assert key_of(str(root), str(place / "pkg/linked/a.py")) == "pkg/real/a.py"
            assert key_of(str(root), str(place / "pkg/real/b.py")) == "pkg/real/b.py"  # a file that is a link
            assert site_key_of(bare_site(root), str(place / "pkg/linked/new.py")) == "pkg/real/new.py"


def test_a_later_patch_over_an_earlier_ones_text_keeps_both_scripts() -> None:
    pristine = b"abcdef"
    one = [ByteSplice(1, 2, b"b", b"BBB")]  # aBBBcdef
    two = [ByteSplice(2, 4, b"BB", b"-"), ByteSplice(8, 8, b"", b"!")]  # aB-cdef!
    layers = layers_of([("one", one), ("two", two)])
    assert layers[0].splices == ((1, 2, "QkJC", "Yg=="),)
    assert layers[1].splices == ((2, 4, 1, "QkI="), (8, 8, 1, ""))
    assert beneath(layers, b"aB-cdef!") == pristine
    assert scripts_of(layers, pristine, b"aB-cdef!") == [("one", one), ("two", two)]
    with pytest.raises(InternalError):
        scripts_of(layers, pristine, b"aB-cdeX!")


@st.composite
def stacks(draw: st.DrawFn) -> tuple[bytes, bytes, list[tuple[str, list[ByteSplice]]]]:
    data = pristine = draw(st.binary(max_size=30))
    scripts = []
    for number in range(draw(st.integers(0, 4))):
        cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=6)))
        splices = []
        out, at = b"", 0
        for start, end in zip(cuts[::2], cuts[1::2], strict=False):
            new = draw(st.binary(max_size=5))
            splices.append(ByteSplice(start, end, data[start:end], new))
            out, at = out + data[at:start] + new, end
        data = out + data[at:]
        scripts.append((f"p{number}", splices))
    return pristine, data, scripts


@given(stacks())
def test_layers_give_every_script_back(stack: tuple[bytes, bytes, list[tuple[str, list[ByteSplice]]]]) -> None:
    pristine, after, scripts = stack
    layers = layers_of(scripts)
    through_json = tuple(Layer(name, tuple(map(tuple, splices))) for name, splices in json.loads(json.dumps(layers)))
    assert scripts_of(through_json, pristine, after) == scripts
    assert beneath(through_json, after) == pristine


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_the_quick_reader_reads_what_json_reads(value: dict[str, object]) -> None:
    text = json.dumps(value, indent=1)
    assert reader.loads(text) == json.loads(text)
    assert reader.loads(text + "\n") == json.loads(text)


@given(st.text(alphabet='{}[]":,0123456789.eE-+ntrufalsx\\ \n', max_size=30))
def test_the_quick_reader_refuses_what_json_refuses(text: str) -> None:
    text = "{" + text
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):
            reader.loads(text)
    else:
        assert reader.loads(text) == expected


def test_the_last_file_of_a_made_directory_takes_it_over() -> None:
    home = "/v/lib"
    old = (
        Draft()
        .with_file("new/a.py", entry_for(None, b"a")._replace(created_dirs=("new",)))
        .with_file("new/b.py", entry_for(None, b"b"))
        .with_file("pkg/c.py", entry_for(b"x", b"c"))
    )
    assert dirs_after(home, old, old.without_file("new/a.py"), {}) == {"new/b.py": ["/v/lib/new"]}
    assert dirs_after(home, old, Draft(), {}) == {}
    made = {"new/deep/d.py": ["/v/lib/new/deep"]}
    both = dirs_after(home, old, old.with_file("new/deep/d.py", entry_for(None, b"d")), made)
    assert both == {"new/a.py": ["/v/lib/new"], "new/b.py": [], "new/deep/d.py": ["/v/lib/new/deep"]}


def test_a_link_is_remembered_and_a_ledger_from_before_links_is_read(tmp_path: Path) -> None:
    linked = Draft().with_file("a.py", entry_for(b"a", b"b")._replace(link="../cache/a.py"))
    (tmp_path / ".patchkit").mkdir()
    save(str(tmp_path), linked)
    assert Ledger.load(str(tmp_path)).files["a.py"].link == "../cache/a.py"
    assert "link" not in Draft().with_file("a.py", entry_for(b"a", b"b")).to_json()["files"]["a.py"]
    assert from_json(Draft().with_file("a.py", entry_for(b"a", b"b")).to_json(), "x").files["a.py"].link is None


def test_a_ledger_from_before_the_replaced_bytes_is_read(tmp_path: Path) -> None:
    value = FULL.to_json()
    for layer in value["files"]["pkg/a.py"]["layers"]:
        layer["splices"] = [splice[:3] for splice in layer["splices"]]
    layers = from_json(value, "x").files["pkg/a.py"].layers
    assert layers == (Layer("one", ((0, 1, "YWI=", None),)), Layer("two", ((1, 1, 3, None),)))
    assert beneath(layers, b"abcd") is None


def test_long_replaced_bytes_are_left_out() -> None:
    long = b"x" * (16 * 1024 + 1)
    assert layers_of([("one", [ByteSplice(0, len(long), long, b"y")])])[0].splices == ((0, len(long), 1, None),)
    assert layers_of([("one", [ByteSplice(1, len(long), long[1:], b"y")])])[0].splices[0][3] is not None
