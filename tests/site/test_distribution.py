from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from support.dists import make_dist, make_egg_info
from support.sites import bare_site

from patchkit.errors import SiteError
from patchkit.site.distribution import find_distribution, misnamed, normalize
from patchkit.site.environment import Site


@pytest.mark.parametrize(
    ("spelled", "normal"),
    [("PyYAML", "pyyaml"), ("ruamel.yaml", "ruamel-yaml"), ("Flask_Login", "flask-login"), ("a-_.b", "a-b")],
)
def test_names_are_normalised_as_pep_503_says(spelled: str, normal: str) -> None:
    assert normalize(spelled) == normal


@pytest.mark.parametrize(
    ("folder", "name", "version", "asked"),
    [
        ("PyYAML-6.0.1.dist-info", "PyYAML", "6.0.1", "pyyaml"),
        ("ruamel.yaml-0.18.6.dist-info", "ruamel.yaml", "0.18.6", "Ruamel_Yaml"),
        ("ruamel_yaml-0.18.6.dist-info", "ruamel.yaml", "0.18.6", "ruamel.yaml"),
        ("Flask_Login-0.6.3.dist-info", "Flask-Login", "0.6.3", "flask-login"),
        ("Flask-Login-0.6.3.dist-info", "Flask-Login", "0.6.3", "flask_login"),
        ("javascript-1!1.2.6.dist-info", "javascript", "1!1.2.6", "javascript"),
        ("python_dateutil-2.9.0.post0.dist-info", "python-dateutil", "2.9.0.post0", "python-dateutil"),
        ("torch-2.3.0+cpu.dist-info", "torch", "2.3.0+cpu", "torch"),
        ("jax-0.10.0.dev20260101.dist-info", "jax", "0.10.0.dev20260101", "JAX"),
    ],
)
def test_a_distribution_is_found_by_any_spelling(
    packages: Path, site: Site, folder: str, name: str, version: str, asked: str
) -> None:
    make_dist(packages, name, version, {"m.py": "x = 1\n"}, dist_info=folder)
    found = find_distribution(site, asked)
    assert found is not None
    assert (found.name, found.version, found.kind) == (name, version, "wheel")
    assert found.info == str(packages / folder)
    assert found.base == str(packages)
    assert not found.editable


def test_a_name_that_begins_another_is_not_taken_for_it(packages: Path, site: Site) -> None:
    make_dist(packages, "jax-extra", "1.0", {"m.py": ""})
    make_dist(packages, "flask-login", "1.0", {"n.py": ""}, dist_info="flask-login-1.0.dist-info")
    assert find_distribution(site, "jax") is None
    assert find_distribution(site, "flask") is None


def test_a_long_header_is_read_to_its_end(packages: Path, site: Site) -> None:
    info = make_dist(packages, "late", "1.0", {"m.py": ""})
    filler = "".join(f"Classifier: Number :: {number:05d}\n" for number in range(400))
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: late\n{filler}Version: 7.5\n\nVersion: 0\n")
    found = find_distribution(site, "late")
    assert found is not None
    assert found.version == "7.5"


def test_a_crlf_header_gives_clean_values(packages: Path, site: Site) -> None:
    info = make_dist(packages, "crlf", "1.0", {"m.py": ""})
    (info / "METADATA").write_bytes(b"Metadata-Version: 2.1\r\nName: crlf\r\nVersion: 1.0\r\n\r\nText\r\n")
    found = find_distribution(site, "crlf")
    assert found is not None
    assert (found.name, found.version) == ("crlf", "1.0")


def test_a_directory_without_metadata_is_the_rest_of_a_removal(packages: Path, site: Site) -> None:
    (packages / "gone-1.0.dist-info").mkdir()
    make_dist(packages, "~ax", "1.0", {}, dist_info="~ax-1.0.dist-info", metadata_name="jax")
    assert find_distribution(site, "gone") is None
    assert find_distribution(site, "jax") is None
    assert site.distributions() == []


def test_the_first_on_the_path_shadows_the_others(tmp_path: Path) -> None:
    make_dist(tmp_path / "user", "pkg", "2.0", {"pkg/a.py": ""})
    make_dist(tmp_path / "system", "pkg", "1.0", {"pkg/a.py": ""})
    make_dist(tmp_path / "system", "other", "3.0", {"other.py": ""})
    site = bare_site(tmp_path / "user", tmp_path / "system")
    found = find_distribution(site, "pkg")
    assert found is not None
    assert found.version == "2.0"
    assert [(one.name, one.version) for one in site.distributions()] == [("pkg", "2.0"), ("other", "3.0")]


def test_two_releases_in_one_directory_are_refused_by_name(packages: Path, site: Site) -> None:
    make_dist(packages, "PyYAML", "6.0", {"yaml/a.py": ""})
    make_dist(packages, "pyyaml", "6.0.1", {"yaml/a.py": ""})
    with pytest.raises(SiteError) as caught:
        find_distribution(site, "pyyaml")
    assert caught.value.code == "duplicate"
    assert "PyYAML-6.0.dist-info" in caught.value.message
    assert "pyyaml-6.0.1.dist-info" in caught.value.message


def test_an_egg_info_of_the_same_release_is_no_second_installation(packages: Path, site: Site) -> None:
    make_dist(packages, "six", "1.16.0", {"six.py": ""})
    make_egg_info(packages, "six", "1.16.0", {})
    found = find_distribution(site, "six")
    assert found is not None
    assert found.kind == "wheel"


def test_kinds_without_a_record(packages: Path, site: Site, tmp_path: Path) -> None:
    make_dist(packages, "bare", "1.0", {"bare/a.py": ""}, record=False)
    make_egg_info(packages, "old.style", "1.2", {"old.py": ""})
    make_egg_info(packages, "debian-flat", "0.3", {"debian_flat.py": ""}, directory=False)
    egg = packages / "easy-4.0-py3.12.egg"
    make_egg_info(egg, "easy", "4.0", {"easy.py": "x = 1\n"}, egg_info="EGG-INFO")
    with zipfile.ZipFile(packages / "zipped-5.0-py3.12.egg", "w") as archive:
        archive.writestr("EGG-INFO/PKG-INFO", "Metadata-Version: 1.1\nName: zipped\nVersion: 5.0\n")
    kinds = {one.name: (one.version, one.kind) for one in site.distributions()}
    assert kinds == {
        "bare": ("1.0", "no-record"),
        "old.style": ("1.2", "egg-info"),
        "debian-flat": ("0.3", "egg-info"),
        "easy": ("4.0", "egg"),
        "zipped": ("5.0", "egg"),
    }
    easy = find_distribution(site, "easy")
    assert easy is not None
    assert easy.base == str(egg)
    zipped = find_distribution(site, "zipped")
    assert zipped is not None
    assert zipped.record.paths() == []


def test_a_distribution_installed_later_is_seen(packages: Path, site: Site) -> None:
    make_dist(packages, "first", "1.0", {"first.py": ""})
    assert find_distribution(site, "second") is None
    make_dist(packages, "second", "1.0", {"second.py": ""})
    assert find_distribution(site, "second") is not None


def test_what_keeps_a_distribution_from_being_found(packages: Path, site: Site) -> None:
    make_dist(packages, "demo-2to3", "1.0", {"m.py": ""})  # a name of its own, that begins with the other
    make_dist(packages, "demo_extra", "1.0", {"n.py": ""})
    assert misnamed(site, "demo") is None
    (packages / "demo-1.0.dist-info").mkdir()
    found = misnamed(site, "Demo")
    assert found is not None
    assert found.what.startswith(f"{packages / 'demo-1.0.dist-info'} has no METADATA")
    make_dist(packages, "renamed", "2.0", {"r.py": ""}, dist_info="old_name-2.0.dist-info")
    for name in ("renamed", "old-name"):
        found = misnamed(site, name)
        assert found is not None
        assert (
            found.what
            == f"{packages / 'old_name-2.0.dist-info'} says that it is renamed, and its own name says otherwise"
        )


def test_the_directory_that_holds_the_metadata(packages: Path, site: Site) -> None:
    make_dist(packages, "one", "1.0", {"one.py": ""})
    make_egg_info(packages / "two-1.0-py3.12.egg", "two", "1.0", {"two.py": ""}, egg_info="EGG-INFO")
    found = {one.name: one for one in site.distributions()}
    assert {name: one.home for name, one in found.items()} == {"one": str(packages), "two": str(packages)}
    assert not any(one.zipped for one in found.values())
    assert found["one"].reinstall.endswith(" one==1.0")


def test_eggs_that_no_path_file_names_are_told_apart_by_nothing(packages: Path, site: Site) -> None:
    for version in ("1.0", "2.0"):
        make_egg_info(packages / f"pkg-{version}-py3.12.egg", "pkg", version, {"pkg.py": ""}, egg_info="EGG-INFO")
    with pytest.raises(SiteError) as caught:
        find_distribution(site, "pkg")
    assert caught.value.code == "duplicate"
    assert "pkg-1.0-py3.12.egg and pkg-2.0-py3.12.egg" in caught.value.message
    (packages / "easy-install.pth").write_text("import sys\n./pkg-2.0-py3.12.egg\n")
    found = find_distribution(site, "pkg")
    assert found is not None
    assert found.version == "2.0"
