from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from support.interpreters import other_pythons

from patchkit.errors import SiteError, UsageError
from patchkit.site import interpreter as module
from patchkit.site.cache import cache_directory
from patchkit.site.interpreter import ask, is_running, own

posix = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")


def _script(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def other() -> str:
    """An interpreter that is not the running one."""
    for path in other_pythons("3.12", "3.13", "3.10", "3.9"):
        if os.path.realpath(path) != os.path.realpath(sys.executable):
            return path
    pytest.skip("there is no other interpreter")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The interpreters that a process was started for."""
    seen: list[str] = []
    real = module._ask

    def counting(path: str) -> dict[str, object]:
        seen.append(path)
        return real(path)

    monkeypatch.setattr(module, "_ask", counting)
    return seen


def test_own_is_this_process() -> None:
    mine = own()
    assert mine.executable == sys.executable
    assert mine.version == sys.version_info[:3]
    assert mine.purelib == sysconfig.get_path("purelib")
    assert mine.purelib in mine.site_directories
    assert mine.prefix == sys.prefix
    assert is_running(mine.executable)


def test_own_markers_are_those_of_packaging() -> None:
    from packaging.markers import default_environment

    expected = dict(default_environment())
    assert own().markers == {key: expected[key] for key in own().markers}
    assert len(own().markers) == 11


def test_asking_the_running_one_starts_no_process(calls: list[str]) -> None:
    assert ask(sys.executable).executable == sys.executable
    assert calls == []


@pytest.mark.parametrize("path", other_pythons("3.8", "3.9", "3.10", "3.12", "3.13", "3.14"))
def test_every_version_answers(path: str) -> None:
    script = "import sys; print('%d.%d' % sys.version_info[:2])"
    version = subprocess.run([path, "-I", "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    found = ask(path)
    asked = "import json, sys, sysconfig; print(json.dumps([sys.version_info[:3], sysconfig.get_path('purelib')]))"
    told = json.loads(subprocess.run([path, "-I", "-c", asked], capture_output=True, check=True).stdout)
    assert [list(found.version), found.purelib] == told
    assert found.python_version == tuple(map(int, version.split(".")))
    assert found.markers["python_version"] == version
    assert found.implementation == "cpython"
    assert found.purelib in found.site_directories


def test_the_answer_is_remembered(other: str, calls: list[str]) -> None:
    first, second = ask(other), ask(other)
    assert calls == [other]
    for name in ("executable", "version", "site_directories", "markers", "prefix"):
        assert getattr(first, name) == getattr(second, name)


def test_a_changed_environment_is_asked_again(
    tmp_path: Path, other: str, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path / "user"))
    root = tmp_path / "venv"
    subprocess.run([other, "-m", "venv", "--without-pip", str(root)], check=True)
    python = str(root / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
    user = str(tmp_path / "user")
    assert not any(one.startswith(user) for one in ask(python).site_directories)
    config = root / "pyvenv.cfg"
    config.write_text(config.read_text().replace("= false", "= true"))
    os.utime(config, ns=(1, 1))
    assert any(one.startswith(user) for one in ask(python).site_directories)
    assert len(calls) == 2


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff", b'{"schema": 1}', None])
def test_a_damaged_entry_is_asked_again(other: str, calls: list[str], damage: bytes | None) -> None:
    ask(other)
    (entry,) = Path(cache_directory()).rglob("*.json")
    if damage is None:
        content = json.loads(entry.read_bytes())
        del content["answer"]["purelib"]
        damage = json.dumps(content).encode()
    entry.write_bytes(damage)
    assert ask(other).executable
    assert len(calls) == 2


def test_an_unwritable_cache_is_not_used(
    tmp_path: Path, other: str, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PATCHKIT_CACHE", str(tmp_path / "file" / "cache"))
    assert ask(other).version == ask(other).version
    assert len(calls) == 2


def test_the_user_site_is_reported_although_asked_in_isolation(
    tmp_path: Path, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path / "user"))
    base = subprocess.run(
        [other, "-c", "import sys; print(sys.prefix == sys.base_prefix)"], capture_output=True, text=True, check=True
    )
    if base.stdout.strip() != "True":
        pytest.skip("the other interpreter is in a virtual environment")
    found = ask(other)
    (user,) = (one for one in found.site_directories if one.startswith(str(tmp_path / "user")))
    assert found.site_directories.index(user) < found.site_directories.index(found.purelib)
    monkeypatch.setenv("PYTHONNOUSERSITE", "1")
    assert user not in ask(other).site_directories


def test_startup_files_do_not_disturb(tmp_path: Path, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "venv"
    subprocess.run([other, "-m", "venv", "--without-pip", str(root)], check=True)
    (packages,) = root.rglob("site-packages")
    (packages / "sitecustomize.py").write_text(
        "print('hello <<patchkit:probe:{'); import atexit\natexit.register(print, 1)\n"
    )
    (packages / "broken.pth").write_text("import no_such_module\n")
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    for name in ("json", "platform", "sysconfig", "site"):
        (hostile / f"{name}.py").write_text("raise SystemExit('from PYTHONPATH')\n")
    monkeypatch.setenv("PYTHONPATH", str(hostile))
    monkeypatch.chdir(hostile)
    (python,) = [path for path in root.rglob("python*") if path.name in ("python", "python.exe")]
    assert Path(ask(str(python)).purelib).samefile(packages)


@posix
def test_what_cannot_be_an_interpreter(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("text")
    for path, reason in ((tmp_path / "none", "No such file"), (plain, "not executable"), (tmp_path, "a directory")):
        with pytest.raises(UsageError, match=reason) as caught:
            ask(str(path))
        assert caught.value.code == "no-interpreter"
        assert str(path) in caught.value.message


@posix
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#!/bin/sh\necho I am no snake >&2\nexit 3\n", "does not behave like Python: it ended with status 3"),
        ("#!/bin/sh\nkill -9 $$\n", "ended by signal 9; it printed nothing"),
        ("#!/no/such/shell\n", "cannot be run"),
        ("#!/bin/sh\necho '<<patchkit:probe:{}:probe:patchkit>>'\n", "gave an answer that cannot be read"),
    ],
)
def test_failures_say_what_was_printed(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(SiteError, match=expected) as caught:
        ask(_script(tmp_path / "python", text))
    assert caught.value.code == "interpreter"
    if "snake" in text:
        assert "I am no snake" in caught.value.message


@posix
def test_an_old_python_is_told_from_a_program_that_is_none(tmp_path: Path) -> None:
    text = '#!/bin/sh\nif [ "$1" = -E ]; then printf "<<2.7>>"; else echo "Unknown option: -I" >&2; exit 2; fi\n'
    with pytest.raises(SiteError, match=r"is Python 2\.7; patchkit works on environments of Python 3\.8"):
        ask(_script(tmp_path / "python", text))


@posix
def test_one_that_hangs_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.5)
    with pytest.raises(SiteError, match=r"did not answer within 0\.5 seconds; it printed:\nthinking"):
        ask(_script(tmp_path / "python", "#!/bin/sh\necho thinking\nsleep 60\n"))


@posix
def test_a_shim_is_followed_and_not_remembered(tmp_path: Path, other: str, calls: list[str]) -> None:
    shim = _script(tmp_path / "python", f'#!/bin/sh\nexec "{other}" "$@"\n')
    assert os.path.realpath(ask(shim).executable) == os.path.realpath(other)
    ask(shim)
    assert len(calls) == 2


def test_the_cache_directory() -> None:
    assert cache_directory({"PATCHKIT_CACHE": os.path.abspath("here")}) == os.path.abspath("here")
    absolute = os.path.abspath("xdg")
    assert cache_directory({"XDG_CACHE_HOME": absolute}) == os.path.join(absolute, "patchkit")
    assert cache_directory({"XDG_CACHE_HOME": "relative"}) == cache_directory({})
    assert os.path.basename(cache_directory({})) == "patchkit"
