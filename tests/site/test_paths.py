from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.dists import make_dist, make_egg_info
from support.sites import bare_site

from patchkit.errors import PatchFileError, PatchkitError, PlanError, SiteError
from patchkit.site import paths
from patchkit.site.distribution import Distribution, find_distribution
from patchkit.site.environment import Site
from patchkit.site.paths import key_of, owners, package_directories, resolve_added, resolve_file, shared_with
from patchkit.site.shadow import shadowing_module


@pytest.fixture
def dist(packages: Path, site: Site) -> Distribution:
    make_dist(
        packages,
        "my-pkg",
        "1.2",
        {"my_pkg/__init__.py": "", "my_pkg/core/sampling.py": "x = 1\n", "my_pkg/core/other.py": "", "single.py": ""},
        extra_rows=[("my_pkg/ghost.py", "", ""), ("../../../bin/tool", "", "")],
    )
    found = find_distribution(site, "my-pkg")
    assert found is not None
    return found


def _code(error: PatchkitError) -> tuple[str, int]:
    return error.code, error.exit_status


def test_a_file_of_the_distribution(packages: Path, dist: Distribution) -> None:
    found = resolve_file(dist, "my_pkg/core/sampling.py")
    assert found.path == found.key == "my_pkg/core/sampling.py"
    assert found.absolute == str(packages / "my_pkg" / "core" / "sampling.py")
    assert found.entry is not None
    assert found.entry.matches(b"x = 1\n") is True


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/etc/passwd", "leads-out"),
        ("../../../bin/tool", "leads-out"),
        ("my_pkg/../../x.py", "leads-out"),
        ("my_pkg/..", "leads-out"),
        ("C:/x.py", "leads-out"),
        ("C:x.py", "leads-out"),
        ("..\\x.py", "leads-out"),
        ("\\\\host\\x.py", "leads-out"),
        ("~/x.py", "leads-out"),
        ("", "path"),
        ("./single.py", "path"),
        ("my_pkg//__init__.py", "path"),
        ("my_pkg/", "path"),
        ("my_pkg/\0.py", "path"),
    ],
)
def test_bad_spellings_are_refused_at_once(dist: Distribution, path: str, code: str) -> None:
    for resolver in (resolve_file, resolve_added):
        with pytest.raises(PatchFileError) as caught:
            resolver(dist, path)
        assert _code(caught.value) == (code, 2)
        assert caught.value.details["path"] == path


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("sampling.py", "my_pkg/core/sampling.py"),
        ("my_pkg/sampling.py", "my_pkg/core/sampling.py"),
        ("my_pkg/core/sampler.py", "my_pkg/core/sampling.py"),
        ("my_pkg/Core/sampling.py", "my_pkg/core/sampling.py"),
        ("my-pkg/core/other.py", "my_pkg/core/other.py"),
    ],
)
def test_the_nearest_names_are_suggested(dist: Distribution, path: str, nearest: str) -> None:
    with pytest.raises(PlanError) as caught:
        resolve_file(dist, path)
    assert _code(caught.value) == ("not-in-distribution", 4)
    assert f"{path} is not a file of my-pkg 1.2" in caught.value.message
    assert caught.value.details["nearest"][0] == nearest
    assert nearest in (caught.value.hint or "")


def test_a_file_that_exists_but_is_not_listed(packages: Path, dist: Distribution) -> None:
    (packages / "my_pkg" / "stray.py").write_text("")
    with pytest.raises(PlanError, match="exists, but RECORD does not list it"):
        resolve_file(dist, "my_pkg/stray.py")


def test_a_file_of_another_distribution_is_said_to_be_so(packages: Path, dist: Distribution) -> None:
    make_dist(packages, "stranger", "3.0", {"stranger/a.py": ""})
    with pytest.raises(PlanError, match="it belongs to stranger"):
        resolve_file(dist, "stranger/a.py")


def test_a_listed_file_that_is_not_there(dist: Distribution) -> None:
    with pytest.raises(SiteError, match="is listed by RECORD but is not there") as caught:
        resolve_file(dist, "my_pkg/ghost.py")
    assert _code(caught.value) == ("missing", 5)


def test_what_is_no_regular_file(packages: Path, dist: Distribution) -> None:
    (packages / "my_pkg" / "ghost.py").mkdir()
    with pytest.raises(SiteError, match="is a directory") as caught:
        resolve_file(dist, "my_pkg/ghost.py")
    assert caught.value.code == "not-a-file"
    if hasattr(os, "mkfifo"):
        (packages / "single.py").unlink()
        os.mkfifo(packages / "single.py")
        with pytest.raises(SiteError, match="not a regular file"):
            resolve_file(dist, "single.py")


def test_an_unreadable_file(dist: Distribution, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(SiteError) as caught:
        resolve_file(dist, "single.py")
    assert caught.value.code == "unreadable"


def test_a_linked_file_is_allowed_and_its_own_place_is_given(
    packages: Path, dist: Distribution, tmp_path: Path
) -> None:
    cached = tmp_path / "uv-cache.py"
    cached.write_text("x = 1\n")
    place = packages / "my_pkg" / "core" / "sampling.py"
    place.unlink()
    place.symlink_to(cached)
    assert resolve_file(dist, "my_pkg/core/sampling.py").absolute == str(place)
    cached.unlink()
    with pytest.raises(SiteError, match=r"is a link to .*uv-cache\.py, which cannot be followed"):
        resolve_file(dist, "my_pkg/core/sampling.py")


def test_a_linked_directory_that_leads_out_is_refused(packages: Path, dist: Distribution, tmp_path: Path) -> None:
    (packages / "my_pkg" / "core").rename(tmp_path / "elsewhere")
    (packages / "my_pkg" / "core").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    for resolver, path in ((resolve_file, "my_pkg/core/sampling.py"), (resolve_added, "my_pkg/core/new.py")):
        with pytest.raises(SiteError, match="leads out of the site") as caught:
            resolver(dist, path)
        assert _code(caught.value) == ("leads-out", 5)


def test_a_linked_directory_within_the_site_has_one_key(packages: Path, dist: Distribution) -> None:
    (packages / "my_pkg" / "core").rename(packages / "my_pkg" / "real_core")
    (packages / "my_pkg" / "core").symlink_to("real_core", target_is_directory=True)
    found = resolve_file(dist, "my_pkg/core/sampling.py")
    assert found.path == "my_pkg/core/sampling.py"
    assert found.key == "my_pkg/real_core/sampling.py"


def test_keys_outside_the_home_are_absolute(tmp_path: Path) -> None:
    make_dist(tmp_path / "second", "pkg", "1.0", {"pkg/a.py": ""})
    (tmp_path / "first").mkdir()
    site = bare_site(tmp_path / "first", tmp_path / "second")
    found = find_distribution(site, "pkg")
    assert found is not None
    assert resolve_file(found, "pkg/a.py").key == (tmp_path / "second" / "pkg" / "a.py").as_posix()


def test_a_home_under_another_name_gives_the_same_keys(tmp_path: Path) -> None:
    make_dist(tmp_path / "lib", "pkg", "1.0", {"pkg/a.py": ""})
    (tmp_path / "lib64").symlink_to("lib", target_is_directory=True)
    site = bare_site(tmp_path / "lib")
    assert key_of(site, str(tmp_path / "lib64" / "pkg" / "a.py")) == "pkg/a.py"


def test_an_added_file(packages: Path, dist: Distribution) -> None:
    found = resolve_added(dist, "my_pkg/deep/new.py")
    assert found.absolute == str(packages / "my_pkg" / "deep" / "new.py")
    assert (found.key, found.entry) == ("my_pkg/deep/new.py", None)
    assert not (packages / "my_pkg" / "deep").exists()


@pytest.mark.parametrize("path", ["new.py", "other/new.py", "my_pkg-1.2.dist-info/new.py"])
def test_an_added_file_must_lie_in_a_package_of_the_distribution(dist: Distribution, path: str) -> None:
    with pytest.raises(PlanError, match="its packages: my_pkg") as caught:
        resolve_added(dist, path)
    assert caught.value.code == "not-in-distribution"
    assert caught.value.hint == "add the file below my_pkg/"


def test_an_added_file_must_not_exist(packages: Path, dist: Distribution) -> None:
    (packages / "my_pkg" / "dangling.py").symlink_to("nowhere")
    for path in ("my_pkg/__init__.py", "my_pkg/core", "my_pkg/dangling.py"):
        with pytest.raises(SiteError, match="exists already") as caught:
            resolve_added(dist, path)
        assert caught.value.code == "exists"
    with pytest.raises(SiteError, match=r"__init__\.py is not a directory"):
        resolve_added(dist, "my_pkg/__init__.py/new.py")


def test_namespace_packages_and_shared_files(packages: Path, site: Site) -> None:
    make_dist(packages, "nvtx", "1.0", {"nvidia/__init__.py": "", "nvidia/nvtx/a.py": ""})
    make_dist(packages, "runtime", "1.0", {"nvidia/__init__.py": "", "nvidia/runtime/a.py": ""})
    assert [one.name for one in owners(site, "nvidia/__init__.py")] == ["nvtx", "runtime"]
    assert [one.name for one in owners(site, "nvidia/nvtx/a.py")] == ["nvtx"]
    assert owners(site, "nvidia/nvtx/a.py", "/elsewhere") == []
    found = find_distribution(site, "nvtx")
    assert found is not None
    assert package_directories(found) == ["nvidia"]
    assert resolve_file(found, "nvidia/__init__.py").key == "nvidia/__init__.py"


def test_a_guessed_list_yields_to_anothers_record(packages: Path, site: Site) -> None:
    make_egg_info(packages, "zope.old", "1.0", {"zope/old.py": ""}, lists={"top_level.txt": "zope\n"})
    make_dist(packages, "zope.interface", "6.4", {"zope/interface.py": ""})
    found = find_distribution(site, "zope.old")
    assert found is not None
    assert resolve_file(found, "zope/old.py").key == "zope/old.py"
    with pytest.raises(PlanError, match=r"belongs to zope\.interface 6\.4"):
        resolve_file(found, "zope/interface.py")


@pytest.mark.parametrize(
    ("compiled", "shadows"),
    [
        ("sampling.cpython-312-x86_64-linux-gnu.so", True),
        ("sampling.abi3.so", True),
        ("sampling.cp312-win_amd64.pyd", True),
        ("sampling.so", True),
        ("sampling.test.so", False),
        ("sampling2.so", False),
        ("sampling.pyi", False),
    ],
)
def test_a_compiled_module_shadows_its_source(packages: Path, dist: Distribution, compiled: str, shadows: bool) -> None:
    (packages / "my_pkg" / "core" / compiled).write_bytes(b"")
    expected = f"my_pkg/core/{compiled}" if shadows else None
    assert shadowing_module(dist, "my_pkg/core/sampling.py") == expected


def test_a_module_of_bytecode_alone(packages: Path, dist: Distribution) -> None:
    """``compileall -b`` with the sources taken away: Python imports it, and there is nothing to patch."""
    source = packages / "my_pkg" / "core" / "sampling.py"
    source.rename(source.with_suffix(".pyc"))
    with pytest.raises(SiteError, match=r"imports take my_pkg/core/sampling.pyc, and there is no source") as caught:
        resolve_file(dist, "my_pkg/core/sampling.py")
    assert caught.value.code == "missing"
    (packages / "my_pkg" / "fast.pyc").write_bytes(b"")
    with pytest.raises(PlanError, match=r"my_pkg/fast.pyc is all that my-pkg 1.2 has of it") as plan:
        resolve_file(dist, "my_pkg/fast.py")
    assert _code(plan.value) == ("bytecode", 4)
    with pytest.raises(SiteError, match=r"exists already as bytecode: my_pkg/fast.pyc") as caught:
        resolve_added(dist, "my_pkg/fast.py")
    assert _code(caught.value) == ("bytecode", 5)


def test_whose_else_many_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each RECORD is read once, and searched once for a folder: what many files cost is no multiple of that."""
    files = [f"space/sub/m{number}.py" for number in range(30)]
    make_dist(tmp_path, "demo", "1.0", dict.fromkeys([*files, "lone.py"], ""))
    make_dist(tmp_path, "other", "1.0", {"space/sub/m7.py": "", "space/sub/m70.py": "", "other.py": ""})
    spelled = [["./space/sub/m8.py", "", ""], ['space/sub/a "quoted" name.py', "", ""]]
    make_dist(tmp_path, "spelled", "1.0", {"lone.py": ""}, extra_rows=spelled)
    make_dist(tmp_path, "near", "1.0", {"space/sub/more.py": "", "deep/space/sub/m9.py": "", "alone.py": ""})
    make_dist(tmp_path, "far", "1.0", {"far/sub/m7.py": ""})
    (tmp_path / "broken-1.0.dist-info").mkdir()
    (tmp_path / "broken-1.0.dist-info" / "RECORD").mkdir()
    demo = find_distribution(bare_site(tmp_path), "demo")
    assert demo is not None
    asked = []

    class Searched(bytes):
        def __contains__(self, needle: object) -> bool:
            asked.append(needle)
            return super().__contains__(needle)  # type: ignore[operator]

    real = paths._bytes_of
    monkeypatch.setattr(paths, "_bytes_of", lambda path: Searched(real(path)))
    found = {path: [one.name for one in others] for path, others in shared_with(demo, [*files, "lone.py"]).items()}
    assert found == {"space/sub/m7.py": ["other"], "space/sub/m8.py": ["spelled"], "lone.py": ["spelled"]}
    assert len(asked) == 5 * 2  # RECORDs, and what is before the first "/"
