"""Pristine bytes out of pip's own cache, by whole commands without an index; pip itself fills the cache."""

from __future__ import annotations

import functools
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bench import CORE, DEMO, Bench
from support.dists import make_dist, make_wheel

from patchkit.site.pipcache import pip_cache


class _Index(http.server.SimpleHTTPRequestHandler):
    """A folder as a package index, whose answers may be kept."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "max-age=86400")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """The address of an index with ``demo 1.0``, and ``other 1.0``."""
    for name in ("demo", "other"):
        folder = tmp_path / "index" / "simple" / name
        folder.mkdir(parents=True)
        make_wheel(folder, name, "1.0", DEMO if name == "demo" else {"other.py": "X = 1\n"})
    handler = functools.partial(_Index, directory=str(tmp_path / "index"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/simple/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def offline(bench: Bench, index: str, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """``demo`` as pip installed it from an index that cannot be reached any more; its cache is in the test's folder."""
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null" if sys.platform != "win32" else "nul")
    monkeypatch.setenv("UV_CACHE_DIR", str(bench.root / "uv"))
    bench.uninstall()
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(bench.site)]
    command += ["--disable-pip-version-check", "--index-url", index, "--trusted-host", "127.0.0.1", "other", "demo"]
    subprocess.run(command, check=True)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return bench


def test_a_hand_edit_needs_no_index(offline: Bench) -> None:
    edited = CORE.replace("x + x", "2 * x").encode()
    offline.write("demo/core.py", edited)
    done = offline.json("create", "mine", "demo")
    assert done.status == 0, done.error
    assert done.json["originals"] == ["pip cache"]
    assert offline("revert", "mine").status == 0
    assert offline.read("demo/core.py") == CORE.encode()


def test_a_scratch_copy_needs_no_index_and_has_what_was_deleted(offline: Bench) -> None:
    offline.write("demo/core.py", b"broken")
    (offline.site / "demo" / "util.py").unlink()
    copy = offline.root / "copy"
    done = offline("edit", "demo", str(copy))
    assert done.status == 0, done.err
    assert "what the site has not as installed comes from pip's cache\n" in done.err
    assert {path: (copy / path).read_bytes().decode() for path in DEMO} == DEMO
    (copy / "demo" / "core.py").write_bytes(CORE.replace("x + x", "2 * x").encode())
    done = offline.json("create", "mine", "demo", "--from", str(copy))
    assert (done.status, done.json["files"], done.json["left"]) == (0, 1, [])


def test_what_nothing_has_any_more(offline: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each place is named, and what would help; a copy is made all the same where the file is only gone."""
    empty = offline.root / "empty"
    monkeypatch.setenv("PIP_CACHE_DIR", str(empty))
    (offline.site / "demo" / "util.py").unlink()
    copy = offline.root / "copy"
    done = offline.json("edit", "demo", str(copy))
    reason = "is gone from the site, and nothing has what was installed"
    assert (done.status, done.json["left"]) == (0, [{"path": "demo/util.py", "reason": reason}])
    assert (copy / "demo" / "core.py").read_bytes() == CORE.encode()
    offline.write("demo/core.py", b"X = 1\n")
    error = offline.json("create", "mine", "demo").error
    assert error["code"] == "fetch"
    assert error["message"].splitlines()[:-1] == [
        "demo/core.py: the bytes that were installed are nowhere:",
        "  site: edited",
        "  ledger: no copy of it",
        f"  uv's cache, {offline.root / 'uv'}: no demo 1.0",
        f"  pip's cache, {empty}: no demo 1.0 among 0 files",
    ]
    assert error["message"].splitlines()[-1].startswith("  released wheel: demo 1.0: the release cannot be fetched")
    assert "export PIP_FIND_LINKS=FOLDER" in error["hint"]
    # What the hint says helps.
    monkeypatch.setenv("PIP_FIND_LINKS", str(offline.root / "index" / "simple" / "demo"))
    done = offline.json("create", "mine", "demo")
    assert (done.status, done.json["originals"]) == (0, ["wheel"])


def test_another_build_of_the_release_is_not_taken(offline: Bench, index: str, tmp_path: Path) -> None:
    """The cache's wheel has the same name and version; RECORD's hash decides."""
    folder = tmp_path / "another"
    folder.mkdir()
    other = CORE.replace("result = None", "result = 0")
    info = make_dist(folder, "demo", "1.0", {**DEMO, "demo/core.py": other})
    (offline.site / "demo-1.0.dist-info" / "RECORD").write_bytes((info / "RECORD").read_bytes())
    offline.write("demo/core.py", b"X = 1\n")
    error = offline.json("create", "mine", "demo").error
    assert f"pip's cache, {pip_cache()}: other bytes in demo 1.0" in error["message"]


def test_a_deleted_file_comes_back_out_of_the_cache(offline: Bench) -> None:
    (offline.site / "demo" / "util.py").unlink()
    done = offline.json("create", "mine", "demo")
    assert (done.status, done.json["removed"], done.json["originals"]) == (0, ["demo/util.py"], ["pip cache"])
    assert offline("revert", "mine").status == 0
    assert offline.pristine()


def test_the_cache_is_only_read(offline: Bench) -> None:
    def state() -> list[tuple[str, int, int]]:
        paths = sorted(Path(pip_cache()).rglob("*"))
        return [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in paths]

    before = state()
    assert any(size > 500 for _, _, size in before)
    offline.write("demo/core.py", CORE.replace("x + x", "2 * x").encode())
    assert offline("create", "mine", "demo").status == 0
    assert state() == before


def test_the_folder_that_a_configuration_file_names(offline: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the usual folder has nothing, pip is asked where its cache is."""
    configured = offline.root / "pip.conf"
    configured.write_text(f"[global]\ncache-dir = {pip_cache()}\n", encoding="utf-8")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(configured))
    monkeypatch.delenv("PIP_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(offline.root / "nothing"))
    offline.write("demo/core.py", CORE.replace("x + x", "2 * x").encode())
    done = offline.json("create", "mine", "demo")
    assert (done.status, done.json["originals"]) == (0, ["pip cache"])
