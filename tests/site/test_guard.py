from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.dists import make_dist
from support.sites import bare_site

from patchkit.errors import GuardError, PatchFileError
from patchkit.model.patch import Target
from patchkit.site.environment import Site
from patchkit.site.guard import check_guards, version_matches


@pytest.mark.parametrize(
    ("specifier", "version", "expected"),
    [
        (">=0.23,<0.33", "0.23", True),
        (">=0.23,<0.33", "0.23.0", True),
        (">=0.23,<0.33", "0.22.9", False),
        (">=0.23,<0.33", "0.33", False),
        (">=0.23,<0.33", "0.33.0rc1", False),  # PEP 440: "<V" leaves out prereleases of V
        (">=0.23,<0.33", "0.32.1rc1", True),
        (">=0.23", "0.23rc1", False),
        (">=0.23rc1", "0.23rc1", True),
        (">=0.10", "0.11.0.dev20260101", True),
        ("==1.0", "1.0+cpu", True),
        ("==1.0+cpu", "1.0", False),
        ("==1.0+cpu", "1.0+cpu", True),
        (">1.0", "1.0+cpu", False),
        (">1.0", "1.0.post1", False),
        (">=1.0", "1.0.post1", True),
        ("==0.13.2", "0.13.2.post6", False),
        ("==0.13.*", "0.13.2.post6", True),
        ("~=1.4.2", "1.4.9", True),
        ("~=1.4.2", "1.5", False),
        (">=2", "1!1.2.6", True),
        ("!=1.0", "1.0", False),
        ("", "2.0a1", True),
    ],
)
def test_version_matches(specifier: str, version: str, expected: bool) -> None:
    assert version_matches(specifier, version) is expected


def test_a_bad_specifier_is_the_patch_files_fault() -> None:
    with pytest.raises(PatchFileError, match=r"'0\.23' is not a version specifier"):
        version_matches("0.23", "1.0")


def _refusal(target: Target, site: Site) -> GuardError:
    with pytest.raises(GuardError) as caught:
        check_guards(target, site)
    assert caught.value.exit_status == 3
    return caught.value


@pytest.fixture
def filled(packages: Path, site: Site) -> Site:
    make_dist(packages, "tpu-inference", "0.24.0", {"tpu_inference/a.py": ""})
    make_dist(packages, "jax", "0.10.1", {"jax/a.py": ""})
    make_dist(packages, "torch", "2.3.0+cpu", {"torch/a.py": ""})
    make_dist(packages, "odd", "not.a.version", {"odd/a.py": ""})
    return site


def test_all_guards_hold(filled: Site) -> None:
    target = Target(
        requirement="TPU_Inference>=0.23,<0.33",
        requires=("jax>=0.10", "torch==2.3.0", "win>=1; sys_platform == 'nowhere'"),
    )
    found = check_guards(target, filled)
    assert found.distribution.name == "tpu-inference"
    assert str(found.version) == "0.24.0"


def test_not_installed(filled: Site) -> None:
    error = _refusal(Target(requirement="vllm-tpu>=0.10,<1"), filled)
    assert error.code == "not-installed"
    assert error.message == "vllm-tpu is not installed in test site; required: vllm-tpu>=0.10,<1"
    assert error.hint == "install vllm-tpu there, or name the environment that has it with --python"


def test_not_installed_has_its_own_hint_and_names_what_was_meant(packages: Path, site: Site) -> None:
    make_dist(packages, "requests", "2.0", {"requests/a.py": ""}, metadata_name="Requests")
    target = Target(requirement="request>=2", otherwise="From 3 on it is in the release.")
    error = _refusal(target, site)
    assert error.message == "request is not installed in test site (did you mean Requests?); required: request>=2"
    assert error.hint == "install request there, or name the environment that has it with --python"
    assert error.details["nearest"] == "Requests"
    error = _refusal(Target(requirement="request", optional=True), site)
    assert error.message == "request is not installed in test site; required: request"


@pytest.mark.parametrize(
    ("target", "key"),
    [
        (Target(requirement="jax; sys_platform ~= 'linux'"), "target.requirement"),
        (Target(requirement="jax", requires=("torch; os_name === 'x' or python_version > '3'",)), "target.requires"),
    ],
)
def test_a_marker_that_cannot_be_evaluated_is_the_patch_files_fault(filled: Site, target: Target, key: str) -> None:
    with pytest.raises(PatchFileError, match=f"{key}: the marker .* cannot be evaluated") as caught:
        check_guards(target, filled)
    assert caught.value.exit_status == 2


def test_another_version(filled: Site) -> None:
    target = Target(requirement="tpu-inference<0.33,>=0.25", otherwise="From 0.33 on it is in the release.")
    error = _refusal(target, filled)
    assert error.code == "version"
    assert error.message == "tpu-inference 0.24.0 is installed; required: tpu-inference>=0.25,<0.33"
    assert error.hint == "From 0.33 on it is in the release."
    assert error.details["installed"] == "0.24.0"


def test_the_hint_without_otherwise(filled: Site) -> None:
    hint = _refusal(Target(requirement="jax<0.10"), filled).hint
    assert hint == (
        "install jax<0.10, or a patch for 0.10.1: `patchkit port NAME --to 0.10.1` carries this one there, "
        "`patchkit matrix NAME` shows where it fits"
    )


def test_a_version_that_is_none(filled: Site) -> None:
    error = _refusal(Target(requirement="odd"), filled)
    assert error.code == "version"
    assert "'not.a.version'" in error.message


def test_a_marker_of_another_platform(filled: Site) -> None:
    error = _refusal(Target(requirement="jax; sys_platform == 'nowhere'"), filled)
    assert error.code == "marker"
    assert 'sys_platform == "nowhere"' in error.message


def test_markers_are_those_of_the_site(packages: Path) -> None:
    make_dist(packages, "jax", "1.0", {"jax/a.py": ""})
    site = bare_site(packages, python_version=(3, 9))
    check_guards(Target(requirement="jax; python_version < '3.10'"), site)
    assert _refusal(Target(requirement="jax; python_version >= '3.10'"), site).code == "marker"


def test_every_failing_requirement_is_named(filled: Site) -> None:
    target = Target(
        requirement="tpu-inference", requires=("jax>=0.11", "torch>=2", "libtpu>=0.0.1", "odd>=1", "torch==2.3.0+cu12")
    )
    error = _refusal(target, filled)
    assert error.code == "requires"
    assert error.message.splitlines()[1:] == [
        "  jax>=0.11: 0.10.1 is installed",
        "  libtpu>=0.0.1: not installed",
        "  odd>=1: installed is 'not.a.version', which is no PEP 440 version",
        "  torch==2.3.0+cu12: 2.3.0+cpu is installed",
    ]
    assert error.details["failing"][1] == {"required": "libtpu>=0.0.1", "installed": None}


def test_an_editable_target(packages: Path, site: Site) -> None:
    direct = json.dumps({"url": "file:///home/me/src", "dir_info": {"editable": True}})
    make_dist(packages, "pkg", "1.0", {}, info_files={"direct_url.json": direct})
    error = _refusal(Target(requirement="pkg", otherwise="else"), site)
    assert error.code == "editable"
    assert error.message == (
        "pkg 1.0 is installed in editable mode: direct_url.json says that its source lies in /home/me/src"
    )
    assert error.hint == "edit it there: /home/me/src"


@pytest.mark.parametrize("text", ["", "two words", "jax>>1", "jax @"])
def test_a_bad_requirement_names_its_key(site: Site, text: str) -> None:
    with pytest.raises(PatchFileError, match=r"target\.requirement"):
        check_guards(Target(requirement=text), site)
