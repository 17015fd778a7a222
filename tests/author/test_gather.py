"""What of a hand edit becomes a patch, and what is left out with its reason."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.bench import CORE, DEMO, UTIL, Bench
from support.dists import keep_wheel, make_dist

from patchkit.author import gather
from patchkit.author.gather import Choice
from patchkit.model.load import load_patch

EDITED = CORE.replace("x + x", "2 * x").encode()
SECRET = "the password is 1234\n"


@pytest.fixture(autouse=True)
def _released(bench: Bench) -> None:
    """The released files at hand, out of the cache."""
    keep_wheel(bench.root / "cache", "demo", "1.0", DEMO)


@pytest.fixture
def copy(bench: Bench) -> Path:
    """A scratch copy with one edit, and a secret outside of it."""
    assert bench("edit", "demo", str(bench.root / "copy")).status == 0
    (bench.root / "copy" / "demo" / "core.py").write_bytes(EDITED)
    (bench.root / "secret.txt").write_text(SECRET)
    return bench.root / "copy"


def left(bench: Bench, *options: str) -> dict[str, str]:
    """What `create` leaves out of the patch, which has the edit of core.py alone."""
    done = bench.json("create", "mine", "demo", *options)
    assert done.status == 0, done.err
    patch = load_patch(str(bench.patches / "mine.toml"))
    assert ([edit.files for edit in patch.edits], patch.adds) == ([("demo/core.py",)], ())
    assert SECRET.strip() not in done.out
    return {item["path"]: item["reason"] for item in done.json["left"]}


def test_a_link_is_not_followed_into_a_patch(bench: Bench, copy: Path) -> None:
    (copy / "demo" / "conf.py").symlink_to(bench.root / "secret.txt")
    (copy / "demo" / "alias.py").symlink_to("core.py")
    (copy / "demo" / "util.py").unlink()
    (copy / "demo" / "util.py").symlink_to(bench.root / "secret.txt")
    assert left(bench, "--from", str(copy)) == {
        "demo/conf.py": gather.LINK,
        "demo/alias.py": gather.LINK,
        "demo/util.py": gather.LED_AWAY,
    }


def test_a_linked_folder_of_a_copy_is_none_of_it(bench: Bench, copy: Path) -> None:
    (copy / "elsewhere").mkdir()
    outside = bench.root / "outside"
    outside.mkdir()
    (outside / "util.py").write_text(SECRET)
    (outside / "core.py").write_bytes(EDITED)
    shutil.rmtree(copy / "demo")
    (copy / "demo").symlink_to(outside)
    done = bench.json("create", "mine", "demo", "--from", str(copy))
    assert done.error["code"] == "nothing-changed"
    assert SECRET.strip() not in done.out


def test_a_link_in_the_site_is_not_followed_either(bench: Bench) -> None:
    (bench.root / "secret.txt").write_text(SECRET)
    bench.write("demo/core.py", EDITED)
    (bench.site / "demo" / "conf.py").symlink_to(bench.root / "secret.txt")
    (bench.site / "demo" / "util.py").unlink()
    (bench.site / "demo" / "util.py").symlink_to(bench.root / "secret.txt")
    assert left(bench) == {"demo/conf.py": gather.LINK, "demo/util.py": gather.LED_AWAY}


def test_a_link_in_a_patched_files_place_is_refused(bench: Bench) -> None:
    bench.patch("mine", '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n')
    assert bench("apply", "mine").status == 0
    (bench.root / "secret.txt").write_text(SECRET)
    (bench.site / "demo" / "core.py").unlink()
    (bench.site / "demo" / "core.py").symlink_to(bench.root / "secret.txt")
    done = bench.json("create", "mine", "demo", "--overwrite")
    assert (done.status, done.error["code"]) == (5, "leads-out")
    assert SECRET.strip() not in done.out


def test_a_file_that_uv_linked_and_that_was_edited_is_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """``uv --link-mode symlink``: the files of the site are links into its cache."""
    monkeypatch.setenv("UV_CACHE_DIR", str(bench.root / "uv"))
    kept = bench.root / "uv" / "archive-v0" / "abc"
    make_dist(kept, "demo", "1.0", DEMO, installer="uv")
    (bench.site / "demo" / "core.py").unlink()
    (bench.site / "demo" / "core.py").symlink_to(kept / "demo" / "core.py")
    (kept / "demo" / "core.py").write_bytes(EDITED)
    assert left(bench) == {}


@pytest.mark.parametrize("source", ["site", "copy"])
def test_a_name_that_no_patch_can_hold_does_not_keep_the_rest_out(bench: Bench, copy: Path, source: str) -> None:
    where = bench.site if source == "site" else copy
    bench.write("demo/core.py", EDITED)
    (where / "demo" / "a:b.py").write_text("A = 1\n")
    options = () if source == "site" else ("--from", str(copy))
    assert left(bench, *options) == {
        "demo/a:b.py": "has a drive letter or a colon: paths are relative to site-packages"
    }


def test_a_large_file_is_compared_by_its_hash(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As installed it does not differ; edited, it is named; new, it is too."""
    monkeypatch.setattr(gather, "LARGEST_FILE", 1000)
    files = {**DEMO, "demo/data.txt": "A" * 2000, "demo/other.txt": "B" * 2000}
    bench.install("1.0", files)
    keep_wheel(bench.root / "cache", "demo", "1.0", files)
    bench.write("demo/core.py", EDITED)
    assert bench.json("create", "mine", "demo", "--dry-run").json["left"] == []
    (bench.site / "demo" / "other.txt").write_text("C" * 2000)
    (bench.site / "demo" / "more.txt").write_text("D" * 2000)
    assert left(bench) == {"demo/other.txt": gather.TOO_LARGE, "demo/more.txt": gather.TOO_LARGE}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_what_is_no_file_is_not_read(bench: Bench) -> None:
    bench.write("demo/core.py", EDITED)
    os.mkfifo(bench.site / "demo" / "pipe.py")
    (bench.site / "demo" / "util.py").unlink()
    os.mkfifo(bench.site / "demo" / "util.py")
    assert left(bench) == {"demo/util.py": gather.NO_FILE}


def test_a_folder_that_is_gone_is_named_once(bench: Bench) -> None:
    files = {**DEMO, "demo/sub/a.py": "A = 1\n", "demo/sub/deep/b.py": "B = 1\n", "demo/sub/deep/c.py": "C = 1\n"}
    bench.install("1.0", files)
    keep_wheel(bench.root / "cache", "demo", "1.0", files)
    bench.write("demo/core.py", EDITED)
    shutil.rmtree(bench.site / "demo" / "sub")
    assert left(bench) == {"demo/sub/": gather.GONE_FOLDER}


def test_files_of_a_folder_that_is_gone_are_taken_away_as_asked(bench: Bench) -> None:
    files = {**DEMO, "demo/sub/a.py": "A = 1\n", "demo/sub/deep/b.py": "B = 1\n"}
    bench.install("1.0", files)
    keep_wheel(bench.root / "cache", "demo", "1.0", files)
    shutil.rmtree(bench.site / "demo" / "sub")
    assert bench("create", "mine", "demo", "--only", "demo/sub/*").status == 0
    assert bench.json("check").json["patches"][0]["state"] == "applied"
    assert bench("revert", "mine").status == 0
    assert bench.read("demo/sub/a.py") == b"A = 1\n"
    assert bench.read("demo/sub/deep/b.py") == b"B = 1\n"


def test_line_breaks_of_a_new_file(bench: Bench) -> None:
    bench.write("demo/core.py", EDITED)
    (bench.site / "demo" / "new.py").write_bytes(UTIL.encode())
    assert left(bench) == {
        "demo/new.py": "is a new file with NUL bytes or carriage returns, which a patch file cannot hold"
    }


def test_which_patterns_are_idle() -> None:
    choice = Choice(["demo/c*.py", "nothing/*"])
    assert (choice.take("demo/core.py"), choice.take("demo/util.py")) == (True, False)
    assert choice.idle == ["nothing/*"]
    every = Choice([])
    assert (every.take("demo/core.py"), every.idle) == (True, [])
