"""``matrix`` and ``port`` on every release of tpu-inference from 0.18.0 to 0.32.0, and on the index.

The expected bytes of a port are those of the shipped patches, whose edits for each release were written by hand.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from released import REPOSITORY

from patchkit.author.hunks import lines_of
from patchkit.author.matrix import plan_release
from patchkit.author.port import port
from patchkit.author.proposal import Port
from patchkit.author.published import WheelFiles, opened_wheel
from patchkit.edit.uniqueness import toml_string
from patchkit.model.load import load_patch, parse_patch
from patchkit.model.patch import Patch

pytestmark = pytest.mark.real

RELEASES = ["0.18.0", "0.19.0", "0.20.0", "0.21.0", "0.22.1", "0.23.0", "0.24.0", "0.25.0", "0.26.0", "0.27.0"]
RELEASES += ["0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0"]


@pytest.fixture(scope="module")
def releases(wheel: Callable[[str, str], Path]) -> Iterator[dict[str, WheelFiles]]:
    """The files of each release."""
    with ExitStack() as stack:
        yield {
            v: stack.enter_context(opened_wheel(str(wheel("tpu-inference", v)), "tpu-inference", v)) for v in RELEASES
        }


def run(cache: Path, *arguments: str) -> tuple[int, dict[str, object], float]:
    """One command line in a process of its own: status, object, CPU seconds of it and its children."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PATCHKIT_CACHE": str(cache)}
    before = _spent()
    done = subprocess.run(
        [sys.executable, "-m", "patchkit", "--json", *arguments], capture_output=True, text=True, env=environment
    )
    return done.returncode, json.loads(done.stdout), _spent() - before


def _spent() -> float:
    """CPU seconds of every process that ended so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_the_shipped_patches_fit_what_they_say(wheel: Callable[[str, str], Path], tmp_path: Path) -> None:
    for version in RELEASES:
        path = wheel("tpu-inference", version)
        folder = tmp_path / "wheels" / "tpu-inference" / version
        folder.mkdir(parents=True)
        (folder / path.name).symlink_to(path)
        (folder / f"{path.name}.sha256").write_text(hashlib.sha256(path.read_bytes()).hexdigest())
    status, found, spent = run(tmp_path, "matrix", "logits-greedy", "rpa-block-size", "--offline")
    assert status == 0
    greedy, blocks = found["patches"]  # type: ignore[misc]
    states = {v["version"]: v["state"] for v in greedy["versions"]}
    assert states == {v: "fails" if v == "0.18.0" else "applies" for v in RELEASES}
    assert greedy["requirement"]["exact"] is True
    assert greedy["requirement"]["proposed"] == "tpu-inference>=0.19,<0.33"
    # Narrower than what fits, on purpose: from 0.30 on, the release has a setting of its own.
    assert {v["state"] for v in blocks["versions"]} == {"applies"}
    assert blocks["requirement"]["proposed"] == "tpu-inference>=0.18,<0.33"
    before = _spent()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    # Two patches over 15 releases take seconds once they are there (DESIGN section 10): some 200 bare starts of Python.
    assert spent < 2000 * (_spent() - before)


def without_probes(name: str) -> Patch:
    """A shipped patch without its probes, whose place is a function's and not told by lines."""
    shipped = load_patch(str(REPOSITORY / "patches" / f"{name}.toml"))
    return shipped._replace(edits=tuple(edit for edit in shipped.edits if edit.action != "probe"))


def as_text(name: str, base: WheelFiles, context: int) -> Patch:
    """What a shipped patch does to one release as text edits, each a hunk of the diff with its context lines."""
    shipped = without_probes(name)
    parts = [f'schema = 1\nname = "text"\nsummary = "s"\n[target]\nrequirement = "tpu-inference=={base.version}"\n']
    for file in plan_release(shipped, base).files:
        assert file.before is not None
        a, b = lines_of(file.before.decode()), lines_of(file.after.decode())
        for group in difflib.SequenceMatcher(None, a, b, autojunk=False).get_grouped_opcodes(context):
            find, new = ("".join(lines[group[0][at] : group[-1][at + 1]]) for lines, at in ((a, 1), (b, 3)))
            texts = f"find = {toml_string(find)}\nreplace = {toml_string(new)}\n"
            parts.append(f'\n[[edit]]\nfile = "{file.path}"\n{texts}')
    return parse_patch("".join(parts).encode(), "text.toml")


def same_as_shipped(name: str, found: Port, release: WheelFiles) -> bool:
    shipped = without_probes(name)
    ported = parse_patch(found.data or found.patch.data, "text.toml")
    wanted, got = ({f.path: f.after for f in plan_release(p, release).files} for p in (shipped, ported))
    return wanted == got


def test_block_sizes_of_one_release_are_carried_to_every_other(releases: dict[str, WheelFiles]) -> None:
    base = releases["0.23.0"]
    text = as_text("rpa-block-size", base, 3)
    for version in RELEASES:
        if version != base.version:
            found = port(text, base, releases[version])
            assert found.state == "ported", version
            assert same_as_shipped("rpa-block-size", found, releases[version]), version


@pytest.mark.parametrize(
    ("base", "version", "state"),
    [
        ("0.23.0", "0.22.1", "ported"),
        ("0.23.0", "0.24.0", "ported"),
        ("0.23.0", "0.25.0", "ported"),
        # The warm-up's dummy tensor takes its sharding by keyword from 0.26.0 on: a line that the patch itself changes.
        ("0.23.0", "0.26.0", "decide"),
        ("0.23.0", "0.32.0", "decide"),
        ("0.26.0", "0.29.0", "ported"),
        ("0.26.0", "0.30.0", "ported"),
        ("0.26.0", "0.32.0", "ported"),
        # Before 0.19.0 there is nothing to change.
        ("0.23.0", "0.18.0", "decide"),
    ],
)
def test_greedy_logits_are_carried_right_or_not_at_all(
    releases: dict[str, WheelFiles], base: str, version: str, state: str
) -> None:
    found = port(as_text("logits-greedy", releases[base], 3), releases[base], releases[version])
    assert found.state == state
    if state == "ported":
        assert same_as_shipped("logits-greedy", found, releases[version])
    elif version == "0.32.0":
        assert [part.index for part in found.parts if part.state == "decide"] == [5]


def test_the_shipped_patch_without_its_other_variant_asks_for_nothing_but_its_range(
    releases: dict[str, WheelFiles],
) -> None:
    data = (REPOSITORY / "patches" / "logits-greedy.toml").read_bytes()
    shipped = parse_patch(data.replace(b">=0.19,<0.33", b">=0.23,<0.24"), "logits-greedy.toml")
    for version in ("0.24.0", "0.32.0"):
        found = port(shipped, releases["0.23.0"], releases[version])
        assert {part.state for part in found.parts} == {"fits"}
        assert found.requirement == f"tpu-inference>=0.23,<0.{int(version.split('.')[1]) + 1}"


def test_a_small_package_out_of_the_index(tmp_path: Path) -> None:
    (tmp_path / "sections.toml").write_text(
        'schema = 1\nname = "sections"\nsummary = "s"\n[target]\nrequirement = "iniconfig>=2.0"\n'
        '[[edit]]\nfile = "iniconfig/__init__.py"\nscope = "SectionWrapper.lineof"\n'
        'match = "return $X"\nreplace = "return $X or None"\ncount = 1\n'
    )
    arguments = ["matrix", str(tmp_path / "sections.toml"), "--versions", ">=1.1,<2.2"]
    status, found, _ = run(tmp_path / "cache", *arguments)
    (patch,) = found["patches"]  # type: ignore[misc]
    states = {v["version"]: v["state"] for v in patch["versions"]}
    assert (states["2.1.0"], states["2.0.0"]) == ("applies", "applies")
    assert set(states.values()) <= {"applies", "no-wheel"}  # 1.1.0 is there as a source only
    assert (status, found["ok"]) == (0, True), "it fits each release that its requirement admits"
    kept = sorted(path.name for path in (tmp_path / "cache" / "wheels" / "iniconfig").rglob("*.whl"))
    assert len(kept) == sum(v["state"] == "applies" for v in patch["versions"])
    status, again, _ = run(tmp_path / "cache", *arguments, "--offline")
    fetched = [v for v in patch["versions"] if v["state"] == "applies"]
    assert (status, again["patches"][0]["versions"]) == (0, fetched)  # type: ignore[index]
