from __future__ import annotations

import json
from pathlib import Path

from support.dists import make_dist, make_egg_info

from patchkit.site.distribution import Distribution, find_distribution
from patchkit.site.environment import Site


def _found(site: Site, name: str) -> Distribution:
    found = find_distribution(site, name)
    assert found is not None
    return found


def test_direct_url_with_editable_true(packages: Path, site: Site) -> None:
    direct = json.dumps({"url": "file:///home/me/my%20src", "dir_info": {"editable": True}})
    make_dist(packages, "pkg", "1.0", {}, info_files={"direct_url.json": direct})
    found = _found(site, "pkg")
    assert found.editable
    assert found.editable_source == "/home/me/my src"
    assert found.editable_reason == "direct_url.json says that its source lies in /home/me/my src"


def test_direct_url_of_a_plain_local_install_is_not_editable(packages: Path, site: Site) -> None:
    for number, text in enumerate(
        ['{"url": "file:///src", "dir_info": {}}', '{"url": "https://x/y.whl", "archive_info": {}}', "{", "[]", "null"]
    ):
        make_dist(packages, f"pkg{number}", "1.0", {f"m{number}.py": ""}, info_files={"direct_url.json": text})
        assert not _found(site, f"pkg{number}").editable


def test_an_egg_link(packages: Path, site: Site, tmp_path: Path) -> None:
    source = tmp_path / "src"
    make_egg_info(source, "Dev-Pkg", "0.1.dev0", {"dev_pkg/a.py": ""}, egg_info="Dev_Pkg.egg-info")
    (packages / "dev-pkg.egg-link").write_text(f"{source}\n.")
    (packages / "easy-install.pth").write_text(f"{source}\n")
    found = _found(site, "dev_pkg")
    assert (found.name, found.version, found.editable) == ("Dev-Pkg", "0.1.dev0", True)
    assert found.editable_source == str(source)


def test_an_egg_link_to_nowhere(packages: Path, site: Site, tmp_path: Path) -> None:
    (packages / "lost.egg-link").write_text(f"{tmp_path / 'gone'}\n.")
    found = _found(site, "lost")
    assert found.editable
    assert found.editable_source == str(tmp_path / "gone")


def test_an_installed_release_beside_an_egg_link_is_the_one(packages: Path, site: Site, tmp_path: Path) -> None:
    source = tmp_path / "src"
    make_egg_info(source, "pkg", "2.0", {}, egg_info="pkg.egg-info")
    (packages / "pkg.egg-link").write_text(f"{source}\n.")
    make_dist(packages, "pkg", "1.0", {"pkg/a.py": ""})
    found = _found(site, "pkg")
    assert (found.version, found.editable) == ("1.0", False)


def test_a_setuptools_path_file(packages: Path, site: Site, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    name = "__editable__.my_pkg-1.0+local.pth"
    make_dist(packages, "my-pkg", "1.0+local", {name: f"{tmp_path / 'work'}\n"})
    found = _found(site, "my-pkg")
    assert found.editable_source == str(tmp_path / "work")
    assert name in (found.editable_reason or "")


def test_a_setuptools_finder(packages: Path, site: Site) -> None:
    finder = "from __future__ import annotations\nMAPPING: dict[str, str] = {'my_pkg': '/home/me/src/my_pkg'}\n"
    files = {
        "__editable___my_pkg_1_0_local_finder.py": finder,
        "__editable__.my_pkg-1.0+local.pth": "import __editable___my_pkg_1_0_local_finder; 1\n",
    }
    make_dist(packages, "my-pkg", "1.0+local", files)
    assert _found(site, "my-pkg").editable_source == "/home/me/src/my_pkg"


def test_a_redirection_without_a_known_source_is_still_editable(packages: Path, site: Site) -> None:
    make_dist(packages, "pkg", "1.0", {"__editable__.pkg-1.0.pth": "import somewhere\n"})
    found = _found(site, "pkg")
    assert found.editable
    assert found.editable_source is None


def test_anothers_redirection_does_not_count(packages: Path, site: Site, tmp_path: Path) -> None:
    make_dist(packages, "pkg-a", "1.0", {"__editable__.pkg_a-1.0.pth": f"{tmp_path}\n"})
    make_dist(packages, "pkg", "1.0", {"pkg/x.py": ""})
    assert not _found(site, "pkg").editable


def test_a_recorded_path_file_of_flit_or_hatch(packages: Path, site: Site, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    make_dist(packages, "hatched", "1.0", {"_hatched.pth": f"{tmp_path / 'src'}\n"})
    found = _found(site, "hatched")
    assert found.editable_reason == f"_hatched.pth leads to its source in {tmp_path / 'src'}"


def test_a_path_file_of_an_ordinary_distribution(packages: Path, site: Site, tmp_path: Path) -> None:
    make_dist(packages, "ns", "1.0", {"ns-nspkg.pth": "import sys, types\n", "zope/ns/a.py": ""})
    make_dist(packages, "pywin", "1.0", {"pywin.pth": "win32\n", "win32/a.py": ""})
    assert not _found(site, "ns").editable
    assert not _found(site, "pywin").editable


def test_a_source_tree_put_on_the_path_by_hand(packages: Path, site: Site, tmp_path: Path) -> None:
    source = tmp_path / "checkout" / "src"
    make_egg_info(source, "pkg", "0.9", {"pkg/a.py": ""}, egg_info="pkg.egg-info")
    (packages / "mine.pth").write_text(f"# mine\n{source}\n")
    found = _found(site, "pkg")
    assert found.editable
    assert found.editable_reason == f"mine.pth leads to its source in {source}"


def test_a_further_package_directory_put_on_the_path_is_not_editable(
    packages: Path, site: Site, tmp_path: Path
) -> None:
    make_dist(tmp_path / "vendor", "pkg", "1.0", {"pkg/a.py": ""})
    (packages / "vendor.pth").write_text(f"{tmp_path / 'vendor'}\n")
    found = _found(site, "pkg")
    assert not found.editable
    assert found.base == str(tmp_path / "vendor")


def test_an_import_hook_without_a_path_in_its_path_file(packages: Path, site: Site) -> None:
    hook = {"_editable_impl_pkg.py": "", "_editable_impl_pkg.pth": "import _editable_impl_pkg\n"}
    make_dist(packages, "pkg", "1.0", hook)
    assert _found(site, "pkg").editable_reason == (
        "_editable_impl_pkg.pth imports _editable_impl_pkg, which redirects its imports to its source"
    )
    assert _found(site, "pkg").editable_source is None


def test_a_path_file_that_imports_something_else_is_no_import_hook(packages: Path, site: Site) -> None:
    make_dist(packages, "starter", "1.0", {"starter.pth": "import os; os.environ.setdefault('A', 'b')\n"})
    make_dist(packages, "foreign", "1.0", {"foreign.pth": "import _elsewhere\n"})
    make_dist(packages, "whole", "1.0", {"_whole.py": "", "whole.pth": "import _whole\n", "whole/__init__.py": ""})
    assert [_found(site, name).editable for name in ("starter", "foreign", "whole")] == [False, False, False]
