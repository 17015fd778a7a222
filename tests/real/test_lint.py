"""``lint`` on released wheels: the shipped patches, a hand edit of idna, and a long-winded patch of tpu-inference."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from released import REPOSITORY

pytestmark = pytest.mark.real

SHIPPED = ["logits-greedy", "logits-greedy-naive", "rpa-block-size"]
RELEASES = ["0.23.0", "0.24.0", "0.32.0"]
IDNA = ["3.4", "3.6", "3.7", "3.10"]


class Desk:
    """A patches folder, a cache with some releases in it, and the command line in a process of its own."""

    def __init__(self, root: Path, wheel: Callable[[str, str], Path]) -> None:
        self.root = root
        self.wheel = wheel
        (root / "patches").mkdir()

    def keep(self, name: str, *versions: str) -> None:
        """Put releases into the cache."""
        for version in versions:
            path = self.wheel(name, version)
            folder = self.root / "cache" / "wheels" / name / version
            folder.mkdir(parents=True)
            (folder / path.name).symlink_to(path)
            (folder / f"{path.name}.sha256").write_text(hashlib.sha256(path.read_bytes()).hexdigest())

    def __call__(self, *arguments: str) -> tuple[int, Any]:
        """Run a command; its status and its object."""
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PATCHKIT_CACHE": str(self.root / "cache")}
        command = [sys.executable, "-m", "patchkit", "--json", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=self.root)
        return done.returncode, json.loads(done.stdout)


@pytest.fixture
def desk(tmp_path: Path, wheel: Callable[[str, str], Path]) -> Desk:
    return Desk(tmp_path, wheel)


def test_the_shipped_patches_have_nothing_but_what_is_meant(desk: Desk) -> None:
    assert desk("lint", "--strict", *SHIPPED) == (0, {**desk("lint", *SHIPPED)[1], "findings": []})
    desk.keep("tpu-inference", *RELEASES)
    status, found = desk("lint", "--strict", *SHIPPED, "--against", ",".join(RELEASES), "--offline")
    assert (status, found["findings"]) == (0, [])
    status, found = desk("lint", "--strict", *SHIPPED, "--against", "all", "--offline")
    # From 0.30 on the release has a setting of its own: its `otherwise` says so, and no fix is offered.
    assert status == 0
    assert [(f["rule"], f["fixable"], Path(f["path"]).stem) for f in found["findings"]] == [
        ("requirement-narrow", False, "rpa-block-size")
    ]


VERBOSE = """\
schema      = 1
name        = "verbose"   # by hand
summary     = "The float32 conversion, in float16"
description = "For the test of lint."
links       = ["https://github.com/vllm-project/tpu-inference/issues/3127"]

[target]
requirement = "tpu-inference>=0.22"
otherwise   = "look again"

# the branch for plain decoding
[[edit]]
file    = "tpu_inference/runner/tpu_runner.py"
find    = '''
        if spec_decode_metadata is None:
            logits = logits.astype(jnp.float32)
            with self.maybe_forbid_compile:
'''
replace = '''
        if spec_decode_metadata is None:
            logits = logits.astype(jnp.float16)
            with self.maybe_forbid_compile:
'''
"""


def test_a_long_anchor_of_three_releases_is_shortened_and_gives_the_same_files(desk: Desk) -> None:
    desk.keep("tpu-inference", *RELEASES)
    path = desk.root / "patches" / "verbose.toml"
    path.write_text(VERBOSE)
    status, found = desk("lint", "verbose", "--against", ",".join(RELEASES), "--offline", "--fix")
    assert status == 0
    assert [one["rule"] for one in found["fixes"] if one["fixed"]] == ["no-scope", "anchor-long"]
    wanted = VERBOSE.replace("        if spec_decode_metadata is None:\n", "").replace(
        "            with self.maybe_forbid_compile:\n", ""
    )
    wanted = wanted.replace("find    =", 'scope   = "TPUModelRunner._sample_from_logits"\nfind    =')
    assert path.read_text() == wanted
    for version in RELEASES:
        with zipfile.ZipFile(desk.wheel("tpu-inference", version)) as archive:
            text = archive.read("tpu_inference/runner/tpu_runner.py").decode()
            site = desk.root / version
            archive.extractall(site)
        old = "            logits = logits.astype(jnp.float32)\n            with self.maybe_forbid_compile:\n"
        assert text.count(old) == 1
        assert desk("--site", str(site), "apply", "verbose")[0] == 0
        result = (site / "tpu_inference/runner/tpu_runner.py").read_text()
        assert result == text.replace(old, old.replace("float32", "float16"))
    assert desk("lint", "verbose", "--against", ",".join(RELEASES), "--offline", "--fix")[1]["fixes"] == []


def test_what_create_makes_is_clean_and_its_requirement_is_widened_to_what_fits(desk: Desk) -> None:
    desk.keep("idna", *IDNA)
    site = desk.root / "site"
    with zipfile.ZipFile(desk.wheel("idna", "3.7")) as archive:
        archive.extractall(site)
        text = archive.read("idna/core.py").decode()
    old = "        raise IDNAError('Label has disallowed hyphens in 3rd and 4th position')\n"
    assert text.count(old) == 1
    (site / "idna" / "core.py").unlink()
    (site / "idna" / "core.py").write_text(text.replace(old, old.replace("disallowed", "forbidden")))
    assert desk("--site", str(site), "create", "words", "idna")[0] == 0
    for what in ("installed", "3.7"):
        status, found = desk("--site", str(site), "lint", "--strict", "words", "--against", what)
        assert (status, [f["rule"] for f in found["findings"]]) == (0, ["no-links"])
    before = (desk.root / "patches" / "words.toml").read_text()
    status, found = desk("lint", "words", "--against", "all", "--offline", "--fix")
    assert status == 0
    (fixed,) = found["fixes"]
    assert (fixed["rule"], fixed["fixed"]) == ("requirement-narrow", True)
    # By hand: 3.4 to 3.7 have that very line, and 3.10 quotes it otherwise.
    fits = [v for v in IDNA if old.encode() in _read(desk.wheel("idna", v), "idna/core.py")]
    assert fits == ["3.4", "3.6", "3.7"]
    after = (desk.root / "patches" / "words.toml").read_text()
    assert after == before.replace('"idna==3.7"', '"idna>=3.4,<3.10"')
    status, found = desk("lint", "words", "--against", "all", "--offline")
    assert (status, [f["rule"] for f in found["findings"]]) == (0, ["no-links", "no-upstreamed"])


def test_a_shorter_anchor_is_not_taken_where_it_would_change_another_release(desk: Desk) -> None:
    """In 0.32.0 two lines stand between: the long anchor is refused there, and the short one would not be."""
    desk.keep("tpu-inference", *RELEASES)
    path = desk.root / "patches" / "verbose.toml"
    more = "        processed_bonus_logits = None\n        if spec_decode"
    path.write_text(VERBOSE.replace("        if spec_decode", more))
    _, found = desk("lint", "verbose", "--against", ",".join(RELEASES), "--offline")
    assert [f["rule"] for f in found["findings"]] == ["requirement-wide", "no-scope"]
    _, found = desk("lint", "verbose", "--against", ",".join(RELEASES[:2]), "--offline", "--fix")
    assert [f["rule"] for f in found["fixes"]] == ["no-scope", "anchor-long"]


def test_a_requirement_that_is_too_wide_is_narrowed(desk: Desk) -> None:
    desk.keep("idna", *IDNA)
    path = desk.root / "patches" / "words.toml"
    text = (
        'schema = 1\nname = "words"\nsummary = "s"\ndescription = "d"\n\n[target]\nrequirement = "idna>=3"  # all\n\n'
    )
    text += '[[edit]]\nfile = "idna/core.py"\nscope = "check_hyphen_ok"\nfind = "raise IDNAError(\'Label has"\n'
    path.write_text(text + 'replace = "raise IDNAError(\'The label has"\n')
    status, found = desk("lint", "words", "--against", "all", "--offline", "--strict", "--fix")
    assert status == 0
    assert [one["rule"] for one in found["fixes"]] == ["requirement-wide"]
    assert path.read_text() == text.replace('"idna>=3"', '"idna>=3,<3.10"') + (
        'replace = "raise IDNAError(\'The label has"\n'
    )


def _read(wheel: Path, member: str) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(member)
