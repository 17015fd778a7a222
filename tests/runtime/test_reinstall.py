"""Which command brings a release back, by who installed it and where; ``tests/real/test_installs.py`` runs them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support.dists import make_dist, make_egg_info
from support.documents import document

from patchkit.runtime.reinstall import command, installer_of, together

FILES = {"demo/core.py": ""}


def environment(root: Path, *, pip: bool = True, config: bool = True, layout: str = "python3.11") -> Path:
    """The package directory of an environment with an interpreter."""
    (root / "bin").mkdir(parents=True)
    for name in ("python", "python3.11"):
        (root / "bin" / name).touch()
    if config:
        (root / "pyvenv.cfg").touch()
    site = root / "lib" / layout / "site-packages"
    site.mkdir(parents=True)
    if pip:
        (site / "pip").mkdir()
    return site


def _conda(root: Path) -> Path:
    site = environment(root, config=False)
    (root / "conda-meta").mkdir()
    for name in ("other-0.1-0", "demo-1.0-py311_0"):
        listed = [f"lib/python3.11/site-packages/{name.partition('-')[0]}-1.0.dist-info/METADATA"]
        (root / "conda-meta" / f"{name}.json").write_text(json.dumps({"files": listed}))
    return site


def _rpm(root: Path) -> Path:
    site = root / "usr" / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    return site


def _apt(root: Path) -> Path:
    site = root / "usr" / "lib" / "python3" / "dist-packages"
    site.mkdir(parents=True)
    return site


def _prefix(root: Path) -> Path:
    site = root / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    return site


def _target(root: Path) -> Path:
    root.mkdir()
    return root


def _shared(root: Path) -> Path:
    make_dist(root, "demo-plugin", "1.0", {"demo/plugin.py": ""})
    return root


def _linked(root: Path) -> Path:
    """As ``uv pip install --link-mode symlink`` leaves it: the metadata are links as well."""
    site = environment(root, pip=False)
    (root / "cache").mkdir()
    (site / "demo-1.0.dist-info").mkdir()
    (root / "cache" / "METADATA").touch()
    (site / "demo-1.0.dist-info" / "METADATA").symlink_to(root / "cache" / "METADATA")
    return site


#: (installed by, into), as docs/installs.md has them.
ROWS: dict[tuple[str, str], Callable[[Path], Path]] = {
    ("pip", "an environment, or a Python's own folder"): environment,
    ("pip", "an environment without pip"): lambda root: environment(root, pip=False),
    ("pip", "`--target DIR`"): _target,
    ("pip", "`--target DIR`, others in the same folders"): _shared,
    ("pip", "`--prefix DIR`, `--root`"): _prefix,
    ("uv", "an environment"): lambda root: environment(root, pip=False),
    ("uv", "an environment, by symbolic links"): _linked,
    ("uv", "`--target DIR`"): _target,
    ("uv", "`--prefix DIR`"): _prefix,
    ("conda", "its environment"): _conda,
    ("rpm", "`lib/python3.11/site-packages` of the system"): _rpm,
    ("apt", "`lib/python3/dist-packages` of Debian or Ubuntu"): _apt,
}


def _page() -> dict[tuple[str, str], str]:
    section = document("docs/installs.md").split("## Which command brings a release back", 1)[1]
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in section.split("\n") if "|" in line
    ]
    return {(row[0], row[1]): row[2].strip("`").replace("\\|", "|") for row in rows[2:]}


def test_the_page_lists_them_all() -> None:
    assert set(_page()) == set(ROWS)


@pytest.mark.parametrize(("installer", "into"), ROWS)
def test_the_command_of_the_page(tmp_path: Path, installer: str, into: str) -> None:
    root = tmp_path / "root"
    home = ROWS[installer, into](root)
    info = make_dist(home, "demo", "1.0", FILES, installer="" if installer == "apt" else installer)
    expected = _page()[installer, into].replace("ENV", str(root)).replace("DIR", str(root))
    assert command(str(home), "demo", "1.0") == expected.replace("INFO", str(info / "METADATA"))


@pytest.mark.parametrize("kind", ["file", "directory", "no RECORD"])
def test_what_pip_cannot_remove_it_is_told_to_ignore(tmp_path: Path, kind: str) -> None:
    home = environment(tmp_path / "env")
    if kind == "no RECORD":
        make_dist(home, "demo", "1.0", FILES, record=False)
    else:
        make_egg_info(home, "demo", "1.0", FILES, directory=kind == "directory")
    assert " --ignore-installed " in command(str(home), "demo", "1.0")
    assert " --force-reinstall " not in command(str(home), "demo", "1.0")


def test_a_python_that_is_externally_managed(tmp_path: Path) -> None:
    home = environment(tmp_path / "usr", config=False)
    make_dist(home, "demo", "1.0", FILES)
    (home.parent / "EXTERNALLY-MANAGED").touch()
    assert command(str(home), "demo", "1.0").endswith(" --break-system-packages demo==1.0")


def test_debians_own_prefix(tmp_path: Path) -> None:
    """Debian's Python installs below ``local``, and marks the folder of its library."""
    environment(tmp_path / "usr", config=False)
    home = tmp_path / "usr" / "local" / "lib" / "python3.11" / "dist-packages"
    make_dist(home, "demo", "1.0", FILES)
    (tmp_path / "usr" / "lib" / "python3.11" / "EXTERNALLY-MANAGED").touch()
    python = tmp_path / "usr" / "bin" / "python3.11"
    assert command(str(home), "demo", "1.0") == (
        f"{python} -m pip install --force-reinstall --no-deps --no-cache-dir --break-system-packages demo==1.0"
    )
    below = tmp_path / "image" / "local" / "lib" / "python3.11" / "dist-packages"
    make_dist(below, "demo", "1.0", FILES)
    assert command(str(below), "demo", "1.0") == (
        f"/usr/bin/python3.11 -m pip install --prefix {tmp_path / 'image'} --ignore-installed --no-deps "
        "--no-cache-dir demo==1.0"
    )


def test_pip_in_a_conda_environment_stays_pip(tmp_path: Path) -> None:
    home = _conda(tmp_path / "env")
    make_dist(home, "demo", "1.0", FILES, installer="pip")
    assert " -m pip install " in command(str(home), "demo", "1.0")


def test_several_at_once_by_installer(tmp_path: Path) -> None:
    home = environment(tmp_path / "env")
    make_dist(home, "one", "1.0", {}, installer="pip")
    make_dist(home, "two", "2.0+cpu", {}, installer="uv")
    make_dist(home, "three", "3.0", {}, installer="pip")
    python = tmp_path / "env" / "bin" / "python"
    assert together(str(home), [("one", "1.0"), ("two", "2.0+cpu"), ("three", "3.0"), ("one", "1.0")]) == (
        f"{python} -m pip install --force-reinstall --no-deps --no-cache-dir one==1.0 three==3.0 && "
        f"uv pip install --python {python} --reinstall --no-deps --no-cache two==2.0+cpu"
    )


def test_a_folder_with_a_space_is_quoted(tmp_path: Path) -> None:
    home = tmp_path / "my packages"
    make_dist(home, "demo", "1!1.0", FILES)
    assert command(str(home), "demo", "1!1.0") == (
        f"pip install --target '{home}' --upgrade --no-deps --no-cache-dir 'demo==1!1.0'"
    )


@pytest.mark.parametrize(
    ("other", "shared"),
    [
        ({"other/core.py": ""}, False),
        ({"other.py": "", "__pycache__/other.cpython-311.pyc": ""}, False),
        ({"demo/plugin.py": ""}, True),
        ({"../../bin/other": ""}, True),  # how pip lists the script that it moves to bin/
        (None, True),  # nothing tells what it has
    ],
)
def test_a_target_folder_whose_folders_others_share(
    tmp_path: Path, other: dict[str, str | bytes] | None, shared: bool
) -> None:
    """Pip's --upgrade removes top-level folders as a whole."""
    home = tmp_path / "site" / "one" / "target"
    make_dist(home, "demo", "1.0", {"demo/core.py": "", "demo.py": "", "../../bin/demo": ""})
    make_dist(home, "other", "1.0", other or {}, record=other is not None)
    assert (" --upgrade " in command(str(home), "demo", "1.0")) == (not shared)
    link = tmp_path / "link"
    link.symlink_to(home)
    assert command(str(link), "demo", "1.0") == command(str(home), "demo", "1.0")


@pytest.mark.parametrize("layout", ["python3.9", "pypy3.10", "python3.13t"])
def test_the_pip_below_a_prefix_is_that_of_its_python(tmp_path: Path, layout: str) -> None:
    """Pip of another Python would make another folder below the prefix."""
    home = tmp_path / "image" / "lib" / layout / "site-packages"
    make_dist(home, "demo", "1.0", FILES)
    assert command(str(home), "demo", "1.0").startswith(f"{layout} -m pip install --prefix {tmp_path / 'image'} ")
    make_dist(home, "demo", "1.0", FILES, installer="uv")
    assert f" --prefix {tmp_path / 'image'} --python {layout} " in command(str(home), "demo", "1.0")


@pytest.mark.parametrize(
    ("folder", "python"),
    [
        ("lib/python3.9/site-packages", "python3.9"),
        ("lib/python/site-packages", "python3.12"),  # macOS: ~/Library/Python/3.12 is the base
        ("Python310/site-packages", "python3.10"),  # Windows
    ],
)
def test_the_users_site_directory_where_no_interpreter_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, python: str
) -> None:
    base = tmp_path / "3.12"
    monkeypatch.setattr("site.getuserbase", lambda: str(base))
    home = base / folder
    make_dist(home, "demo", "1.0", FILES)
    again = "-m pip install --user --force-reinstall --no-deps --no-cache-dir demo==1.0"
    assert command(str(home), "demo", "1.0") == f"{python} {again}"
    assert command(str(home), "demo", "1.0", executable="/opt/python") == f"/opt/python {again}"


def test_the_cache_of_uv_once_it_is_clean(tmp_path: Path) -> None:
    home = _linked(tmp_path / "env")
    make_dist(home, "demo", "1.0", FILES, installer="uv")
    again = command(str(home), "demo", "1.0", cached=True)
    assert again == f"uv pip install --python {tmp_path}/env/bin/python --reinstall --no-deps demo==1.0"


def test_the_first_word_of_installer(tmp_path: Path) -> None:
    info = make_dist(tmp_path, "demo", "1.0", FILES, installer="UV 0.9.1")
    assert installer_of(str(info)) == "uv"
    assert installer_of(str(tmp_path)) == installer_of(None) == ""
