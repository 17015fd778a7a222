from __future__ import annotations

import importlib.util
import os
import sys
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from support.dists import damage_member, make_wheel
from support.interpreters import find_python

from patchkit.errors import PlanError, SiteError, UsageError
from patchkit.site import wheel as module
from patchkit.site.cache import cache_directory
from patchkit.site.interpreter import ask
from patchkit.site.process import Completed
from patchkit.site.wheel import fetch_wheel, pip_command, released_versions, wheel_member

needs_pip = pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="there is no pip beside pytest")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def _answering(monkeypatch: pytest.MonkeyPatch, *answers: Completed) -> list[list[str]]:
    """Replace pip: it gives these answers in turn; its commands are returned."""
    commands: list[list[str]] = []
    remaining = list(answers)

    def run(command: list[str], patience: float) -> Completed:
        commands.append(command)
        return remaining.pop(0)

    monkeypatch.setattr(module, "_run", run)
    monkeypatch.setattr(module, "pip_command", lambda python: ["pip"])
    return commands


@needs_pip
def test_a_wheel_is_fetched_once_and_verified(index: Path, tmp_path: Path) -> None:
    original = make_wheel(index, "my-pkg", "1.0", {"my_pkg/a.py": "x = 1\n"}).read_bytes()
    said: list[str] = []
    found = fetch_wheel("My_Pkg", "1.0", cache=str(tmp_path / "c"), progress=said.append)
    assert found == str(tmp_path / "c" / "wheels" / "my-pkg" / "1.0" / "my_pkg-1.0-py3-none-any.whl")
    assert said == ["downloading My_Pkg 1.0"]
    assert Path(found).read_bytes() == original
    assert sorted(path.name for path in Path(found).parent.iterdir()) == [
        "my_pkg-1.0-py3-none-any.whl",
        "my_pkg-1.0-py3-none-any.whl.sha256",
    ]
    assert fetch_wheel("my-pkg", "1.0", cache=str(tmp_path / "c"), progress=said.append) == found
    assert len(said) == 1
    Path(found).write_bytes(b"tampered")
    assert fetch_wheel("my-pkg", "1.0", cache=str(tmp_path / "c"), progress=said.append) == found
    assert Path(found).read_bytes() == original
    assert len(said) == 2


@needs_pip
def test_a_wheel_for_the_sites_python_only(index: Path) -> None:
    version = "3.12" if sys.version_info[:2] != (3, 12) else "3.13"
    path = find_python(version)
    if path is None:
        pytest.skip(f"no Python {version}")
    tag = "cp" + version.replace(".", "")
    make_wheel(index, "comp", "2.0", {"comp.py": ""}, tag=f"{tag}-none-any")
    with pytest.raises(SiteError):
        fetch_wheel("comp", "2.0")
    assert fetch_wheel("comp", "2.0", python=ask(path)).endswith(f"comp-2.0-{tag}-none-any.whl")
    assert released_versions("comp", python=ask(path)) == ["2.0"]


@needs_pip
def test_released_versions_oldest_first_with_prereleases(index: Path) -> None:
    for version in ("0.9", "0.10", "0.10.post1", "0.11rc1", "0.2"):
        make_wheel(index, "my-pkg", version, {"my_pkg/a.py": ""})
    assert released_versions("my-pkg") == ["0.2", "0.9", "0.10", "0.10.post1", "0.11rc1"]


@needs_pip
def test_what_is_not_released(index: Path) -> None:
    make_wheel(index, "my-pkg", "1.0", {"my_pkg/a.py": ""})
    with pytest.raises(SiteError) as caught:
        fetch_wheel("my-pkg", "2.0")
    assert (caught.value.code, caught.value.exit_status) == ("fetch", 5)
    assert caught.value.message == (
        "my-pkg 2.0: the release cannot be fetched as a wheel; pip said: No matching distribution found for my-pkg==2.0"
    )
    with pytest.raises(SiteError, match="no-such: no released wheel can be found"):
        released_versions("no-such")


def test_an_unreachable_index_is_told_without_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    error = (
        b"WARNING: Retrying: NewConnectionError: Failed to establish a new connection: /simple/my-pkg/\n"
        b"ERROR: Could not fetch https://user:secret@index.example/simple/my-pkg/ now\n"
    )
    commands = _answering(monkeypatch, Completed(1, b"", error), Completed(1, b"", error))
    for action in (lambda: fetch_wheel("my-pkg", "1.0"), lambda: released_versions("my-pkg")):
        with pytest.raises(SiteError, match="the package index cannot be reached") as caught:
            action()
        assert "secret" not in str(caught.value.to_json())
        assert "example" not in str(caught.value.to_json())
    assert len(commands) == 2


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = _answering(monkeypatch, Completed(1, b"", b""))
    with pytest.raises(SiteError, match="it printed nothing"):
        fetch_wheel("my-pkg", "1.0")
    (command,) = commands
    assert command[:2] == ["pip", "download"]
    assert command[-1] == "my-pkg==1.0"
    joined = " ".join(command)
    for option in ("--no-deps", "--only-binary :all:", "--ignore-requires-python", "--no-input"):
        assert option in joined


def test_an_old_pip_lists_by_refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = (
        b"ERROR: Could not find a version that satisfies the requirement x==999999!0 (from versions: 1.0, 1.1rc1)\n"
    )
    commands = _answering(
        monkeypatch, Completed(1, b"", b'ERROR: unknown command "index"\n'), Completed(1, b"", refusal)
    )
    assert released_versions("x") == ["1.0", "1.1rc1"]
    assert [command[1] for command in commands] == ["index", "download"]


def test_without_any_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SiteError, match="takes pip, and there is none") as caught:
        fetch_wheel("my-pkg", "1.0")
    assert "-m ensurepip" in (caught.value.hint or "")


def test_a_pip_on_the_path_or_of_the_site_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from patchkit.site.interpreter import own

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (tmp_path / "pip").write_text("#!/bin/sh\n")
    (tmp_path / "pip").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pip_command(None) == [str(tmp_path / "pip")]
    site_python = own()
    (tmp_path / "packages" / "pip").mkdir(parents=True)
    site_python.site_directories = (str(tmp_path / "packages"),)
    assert pip_command(site_python) == [sys.executable, "-P", "-m", "pip"]
    site_python.version = (3, 8, 18)
    assert pip_command(site_python) == [sys.executable, "-m", "pip"]


@pytest.mark.parametrize(("name", "version"), [("-r", "1"), ("a/b", "1"), ("", "1"), ("a", "--x"), ("a", "../1")])
def test_bad_names_and_versions_never_reach_pip(name: str, version: str) -> None:
    with pytest.raises(UsageError):
        fetch_wheel(name, version)


def test_an_unwritable_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _answering(monkeypatch)
    (tmp_path / "file").write_text("")
    with pytest.raises(SiteError, match="cannot be written") as caught:
        fetch_wheel("my-pkg", "1.0", cache=str(tmp_path / "file"))
    assert "$PATCHKIT_CACHE" in (caught.value.hint or "")


def test_a_wheel_of_another_process_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose hash is not there yet, or was just written for the wheel that is about to come."""
    folder = tmp_path / "wheels" / "my-pkg" / "1.0"
    theirs = make_wheel(folder, "my-pkg", "1.0", {"my_pkg/a.py": ""})
    _answering(monkeypatch, *[Completed(1, b"", b"ERROR: no\n")] * 2)
    for remembered in (None, "0" * 64):
        if remembered is not None:
            (folder / f"{theirs.name}.sha256").write_text(remembered)
        with pytest.raises(SiteError):
            fetch_wheel("my-pkg", "1.0", cache=str(tmp_path))
        assert theirs.exists()


def test_a_wheel_comes_into_place_after_its_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(pip: list[str], name: str, version: str, folder: str, python: object) -> str:
        return str(make_wheel(Path(folder), name, version, {"my_pkg/a.py": ""}))

    real, seen = module.os.replace, []

    def replace(source: str, target: str) -> None:
        if target.endswith(".whl"):
            seen.append(Path(target + ".sha256").read_text() == module._sha256(source))
        real(source, target)

    _answering(monkeypatch)
    monkeypatch.setattr(module, "_download", download)
    monkeypatch.setattr(module.os, "replace", replace)
    assert Path(fetch_wheel("my-pkg", "1.0", cache=str(tmp_path))).exists()
    assert seen == [True]


@pytest.mark.parametrize("failing", ["_download", "_sha256"])
def test_an_error_of_the_disk_is_a_failed_fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    def fail(*arguments: object) -> str:
        raise OSError(28, "No space left on device")

    _answering(monkeypatch)
    monkeypatch.setattr(module, "_download", lambda *arguments: "x.whl")
    monkeypatch.setattr(module, failing, fail)
    with pytest.raises(SiteError, match="cannot be written: No space left on device") as caught:
        fetch_wheel("my-pkg", "1.0", cache=str(tmp_path))
    assert caught.value.code == "fetch"


def test_the_members_of_a_wheel(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path, "my-pkg", "1.0", {"my_pkg/a.py": "a = 1\n", "my_pkg-1.0.data/purelib/my_pkg/b.py": "b = 1\n"}
    )
    assert wheel_member(str(wheel), "my_pkg/a.py") == b"a = 1\n"
    assert wheel_member(str(wheel), "my_pkg/b.py") == b"b = 1\n"
    with pytest.raises(PlanError, match=r"my_pkg-1\.0-py3-none-any\.whl has no file my_pkg/c\.py"):
        wheel_member(str(wheel), "my_pkg/c.py")
    wheel.write_bytes(b"no zip")
    with pytest.raises(SiteError, match="cannot be read"):
        wheel_member(str(wheel), "my_pkg/a.py")


@pytest.mark.parametrize("how", ["deflate", "encrypted", "checksum"])
def test_a_member_that_cannot_be_read_is_the_wheels_fault(tmp_path: Path, how: str) -> None:
    wheel = make_wheel(tmp_path, "my-pkg", "1.0", {"my_pkg/a.py": "a = 1\n" * 9})
    damage_member(wheel, "my_pkg/a.py", how)
    with pytest.raises(SiteError, match=r"my_pkg-1\.0-py3-none-any\.whl cannot be read: my_pkg/a\.py: ") as caught:
        wheel_member(str(wheel), "my_pkg/a.py")
    assert caught.value.code == "fetch"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_is_no_regular_file_is_no_wheel(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "my_pkg-1.0-py3-none-any.whl")
    with pytest.raises(SiteError, match="not a regular file"):
        wheel_member(str(tmp_path / "my_pkg-1.0-py3-none-any.whl"), "my_pkg/a.py")


def test_a_member_is_bounded_by_what_it_says_and_by_what_it_is(tmp_path: Path) -> None:
    """65 MiB of nothing are packed to 65 kB."""
    wheel = make_wheel(tmp_path, "my-pkg", "1.0", {"my_pkg/a.py": bytes(65 << 20)})
    damage_member(wheel, "my_pkg/a.py", "checksum")
    assert wheel.stat().st_size < 1 << 17
    tracemalloc.start()
    with pytest.raises(SiteError, match=r"my_pkg/a\.py in .*: larger than 64 MiB") as caught:
        wheel_member(str(wheel), "my_pkg/a.py")
    damage_member(make_wheel(tmp_path, "my-pkg", "1.0", {"my_pkg/a.py": bytes(65 << 20)}), "my_pkg/a.py", "lying")
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    with pytest.raises(SiteError, match="cannot be read"):
        wheel_member(str(wheel), "my_pkg/a.py")
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert caught.value.code == "too-large"
    assert peak < 4 << 20


def test_the_default_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = Path(cache_directory()) / "wheels" / "my-pkg" / "1.0"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "my_pkg-1.0-py3-none-any.whl", "w"):
        pass
    digest = module._sha256(str(folder / "my_pkg-1.0-py3-none-any.whl"))
    (folder / "my_pkg-1.0-py3-none-any.whl.sha256").write_text(digest)
    _answering(monkeypatch)
    assert fetch_wheel("my-pkg", "1.0") == str(folder / "my_pkg-1.0-py3-none-any.whl")
