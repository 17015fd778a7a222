from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.dists import make_dist

from patchkit.errors import SiteError, UsageError
from patchkit.site import interpreter as interpreter_module
from patchkit.site.environment import Site, home_of, ledger_homes, resolve

BIN = "Scripts" if sys.platform == "win32" else "bin"
EXE = "python.exe" if sys.platform == "win32" else "python"


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    root = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    return root


def _packages(root: Path) -> Path:
    found = [path for path in root.rglob("site-packages") if "lib64" not in path.parts]
    assert len(found) == 1
    return found[0]


def test_without_anything_it_is_the_running_interpreter() -> None:
    site = resolve(environ={})
    assert site.interpreter is not None
    assert site.interpreter.executable == sys.executable
    assert site.python_version == sys.version_info[:2]


def test_a_virtual_environment_by_each_of_its_names(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = _packages(venv)
    make_dist(packages, "pkg", "1.0", {"pkg/a.py": ""})
    python = str(venv / BIN / EXE)
    by_name = resolve(python="python", environ={"PATH": str(venv / BIN)})
    sites = [
        resolve(python=python, environ={}),
        resolve(python=str(venv), environ={}),
        resolve(directory=str(venv), environ={}),
        resolve(directory=str(packages), environ={}),
        resolve(environ={"VIRTUAL_ENV": str(venv)}),
        resolve(environ={"PATCHKIT_PYTHON": python, "VIRTUAL_ENV": "/no/such"}),
        by_name,
    ]
    for site in sites:
        assert Path(site.home).samefile(packages)
        assert [Path(path).resolve() for path in site.paths] == [packages.resolve()]
        assert site.interpreter is not None
        assert Path(site.interpreter.prefix).samefile(venv)
        assert site.python_version == sys.version_info[:2]
        assert site.find("pkg") is not None
    monkeypatch.chdir(venv.parent)
    assert Path(resolve(python="venv", environ={}).home).samefile(packages)


def test_a_warm_cache_needs_no_process(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = resolve(python=str(venv), environ=None)

    def forbidden(path: str) -> dict[str, object]:
        raise AssertionError(path)

    monkeypatch.setattr(interpreter_module, "_ask", forbidden)
    second = resolve(python=str(venv), environ=None)
    assert (first.home, first.paths, first.markers) == (second.home, second.paths, second.markers)


def test_a_virtual_environment_is_not_taken_for_the_python_that_made_it(venv: Path) -> None:
    inside = resolve(python=str(venv), environ={})
    assert inside.home != resolve(environ={}).home


def test_site_and_python_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        resolve(python=sys.executable, directory=str(tmp_path))


def test_a_target_folder_is_bare(tmp_path: Path) -> None:
    site = resolve(directory=str(tmp_path), environ={})
    assert (site.home, site.paths, site.interpreter, site.python_version) == (
        str(tmp_path),
        (str(tmp_path),),
        None,
        None,
    )
    assert site.markers["python_version"] == ".".join(map(str, sys.version_info[:2]))
    assert site.label == f"{tmp_path} (no interpreter)"


def test_the_version_of_a_bare_directory_is_that_of_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "lib" / "python3.9" / "site-packages"
    folder.mkdir(parents=True)
    for given in (folder, tmp_path):
        if given == tmp_path:
            (tmp_path / "pyvenv.cfg").write_text("home = /gone\n")
        site = resolve(directory=str(given), environ={})
        assert site.home == str(folder)
        assert site.python_version == (3, 9)
        assert site.markers["python_version"] == "3.9"
        assert site.markers["python_full_version"] == "3.9.0"
        assert site.label == f"{folder} (Python 3.9, no interpreter)"


@pytest.mark.parametrize("line", ["version = 3.10.4", "version_info = 3.10.4.final.0"])
def test_the_version_of_a_windows_layout_is_that_of_pyvenv_cfg(tmp_path: Path, line: str) -> None:
    folder = tmp_path / "Lib" / "site-packages"
    folder.mkdir(parents=True)
    (tmp_path / "pyvenv.cfg").write_text(f"home = C:\\Python310\n{line}\n")
    assert resolve(directory=str(folder), environ={}).python_version == (3, 10)


def test_a_broken_interpreter_does_not_keep_one_from_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "lib" / "python3.12" / "site-packages"
    folder.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3.12").write_text("#!/no/such/thing\n")
    (tmp_path / "bin" / "python3.12").chmod(0o755)
    site = resolve(directory=str(folder), environ={})
    assert site.interpreter is None
    assert site.python_version == (3, 12)


def test_an_unrelated_python_above_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    folder = tmp_path / "lib" / "python3.7" / "site-packages"
    folder.mkdir(parents=True)
    site = resolve(directory=str(folder), environ={})
    assert site.interpreter is None
    assert site.python_version == (3, 7)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"directory": "{tmp}/none"}, "--site: {tmp}/none does not exist"),
        ({"directory": "{tmp}/file"}, "--site: {tmp}/file is not a directory"),
        ({"python": "{tmp}/none"}, "--python: {tmp}/none does not exist"),
        ({"python": "no-such-python-here"}, "--python: there is no no-such-python-here on PATH"),
        ({"python": "{tmp}/"}, "--python: {tmp}/ is a directory without bin/python"),
        ({"python": ""}, "--python: the empty text does not exist"),
        ({"environ": {"PATCHKIT_PYTHON": "{tmp}/none"}}, "$PATCHKIT_PYTHON: {tmp}/none does not exist"),
        ({"environ": {"VIRTUAL_ENV": "{tmp}/none"}}, "$VIRTUAL_ENV is {tmp}/none, which does not exist"),
        ({"environ": {"VIRTUAL_ENV": "{tmp}"}}, "$VIRTUAL_ENV is {tmp}, which holds no Python interpreter"),
    ],
)
def test_what_is_not_there_is_named(tmp_path: Path, arguments: dict[str, object], expected: str) -> None:
    (tmp_path / "file").write_text("")

    def filled(value: object) -> object:
        if isinstance(value, dict):
            return {key: filled(one) for key, one in value.items()}
        return str(value).replace("{tmp}", str(tmp_path))

    with pytest.raises(UsageError) as caught:
        resolve(**{"environ": {"PATH": ""}, **{key: filled(value) for key, value in arguments.items()}})  # type: ignore[arg-type]
    assert expected.replace("{tmp}", str(tmp_path)) in caught.value.message
    assert caught.value.exit_status == 2


def test_several_package_directories_without_an_interpreter(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("")
    for version in ("3.9", "3.10"):
        (tmp_path / "lib" / f"python{version}" / "site-packages").mkdir(parents=True)
    with pytest.raises(UsageError, match="several site-packages"):
        resolve(directory=str(tmp_path), environ={})


def test_a_linked_lib64_counts_once(venv: Path) -> None:
    if not (venv / "lib64").exists() and sys.platform != "win32":
        os.symlink("lib", venv / "lib64")
    site = resolve(python=str(venv), environ={})
    assert len(site.paths) == 1


def folders(tmp_path: Path, *names: str) -> list[str]:
    for name in names:
        (tmp_path / name).mkdir()
    return [str(tmp_path / name) for name in names]


def site_with(home: str, paths: list[str]) -> Site:
    return Site(home=home, paths=paths, interpreter=None, python_version=(3, 12), label="a site")


def test_the_default_home_is_purelib_whoever_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    before = resolve(python=str(venv), environ={}).home
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and real(path, mode))
    assert resolve(python=str(venv), environ={}).home == before
    assert Path(before).samefile(_packages(venv))


def test_a_site_at_another_home(tmp_path: Path) -> None:
    pure, user = folders(tmp_path, "pure", "user")
    site = site_with(pure, [user, pure])
    assert site.at(pure) is site
    other = site.at(user)
    assert (other.home, other.paths, other.python_version, other.label) == (user, (user, pure), (3, 12), "a site")
    assert (site.home, other.markers) == (pure, site.markers)


def test_the_home_of_a_distribution_is_the_folder_that_holds_it(tmp_path: Path) -> None:
    pure, user, debian, elsewhere = folders(tmp_path, "pure", "user", "dist-packages", "elsewhere")
    site = site_with(pure, [user, pure, debian])
    for folder, name in ((pure, "one"), (user, "two"), (debian, "three")):
        make_dist(Path(folder), name, "1.0", {f"{name}.py": ""})
        found = site.find(name)
        assert found is not None
        assert home_of(site, found) == folder
    make_dist(Path(elsewhere), "four", "1.0", {"four.py": ""})
    (Path(user) / "more.pth").write_text(elsewhere + "\n")
    found = site.find("four")
    assert found is not None
    assert home_of(site, found) == pure


def test_the_home_under_another_name_is_the_home(tmp_path: Path) -> None:
    """``lib64`` is often a link to ``lib``: there is one ledger, under one name."""
    (lib,) = folders(tmp_path, "lib")
    (tmp_path / "lib64").symlink_to("lib")
    site = site_with(lib, [str(tmp_path / "lib64")])
    make_dist(Path(lib), "one", "1.0", {"one.py": ""})
    found = site.find("one")
    assert found is not None
    assert home_of(site, found) == lib
    (Path(lib) / ".patchkit").mkdir()
    assert ledger_homes(site) == [lib]


def test_the_ledgers_of_a_site_the_default_one_first(tmp_path: Path) -> None:
    pure, user, system = folders(tmp_path, "pure", "user", "system")
    site = site_with(pure, [user, pure, system])
    assert ledger_homes(site) == []
    for folder in (user, system):
        (Path(folder) / ".patchkit").mkdir()
    assert ledger_homes(site) == [user, system]
    (Path(pure) / ".patchkit").mkdir()
    assert ledger_homes(site) == [pure, user, system]
    (Path(system) / ".patchkit").rmdir()
    (Path(system) / ".patchkit").write_text("")
    with pytest.raises(SiteError, match="is not a directory") as caught:
        ledger_homes(site)
    assert (caught.value.code, caught.value.exit_status) == ("not-a-directory", 5)


def test_a_virtual_environment_that_sees_the_system(tmp_path: Path) -> None:
    root = tmp_path / "venv"
    command = [sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", str(root)]
    subprocess.run(command, check=True)
    site = resolve(python=str(root), environ={})
    assert Path(site.paths[0]).samefile(_packages(root))
    assert Path(site.home).samefile(_packages(root))
    assert len(site.paths) > 1
