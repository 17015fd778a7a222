"""What the documents show is what is printed: their sessions run, on small sites and on real releases."""

from __future__ import annotations

import ast
import inspect
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.dists import keep_wheel, make_dist, make_wheel
from support.documents import (
    Console,
    blocks,
    document,
    matches,
    released_wheel,
    rows,
    ticked,
)

import patchkit
from patchkit.cli.main import main

# --- what is shown is what is printed


def test_the_comparison_itself() -> None:
    assert matches("a\n...\nd", "a\nb\nc\nd\n")
    assert matches("a\n...\n", "a\nb\n")
    assert matches("a\n...\nb", "a\nb")
    assert matches("a ... c", "a b c")
    assert not matches("a ... c", "a b\nc")
    assert not matches("a\n", "a\nb\n")
    assert not matches("", "a\n")
    assert not matches("a\n...\nd", "a\nb\nc\n")


def test_a_console_does_not_say_how_far_it_is(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of progress only by a machine that is busy is no part of what a document shows."""
    monkeypatch.setattr("patchkit.cli.progress.QUIET", -1.0)
    monkeypatch.setenv("PATCHKIT_CACHE", str(tmp_path / "cache"))
    keep_wheel(tmp_path / "cache", "greeting", "1.4", {"greeting/speak.py": SPEAK})
    (project / "patches" / "greet.toml").write_text(
        'schema = 1\nname = "greet"\nsummary = "s"\n[target]\nrequirement = "greeting"\n'
        '[[edit]]\nfile = "greeting/speak.py"\nfind = "Hey"\nreplace = "Hello"\n'
    )
    assert main(["matrix", "greet", "--offline"]) == 0
    printed = Console(project, lambda: None).run("patchkit matrix greet --offline")
    assert printed.startswith("greet on greeting: 1 release, newest first\n")


#: attrdict 2.0.1, cut down to what the tutorial touches; the first lines are the release's own.
ATTRDICT: dict[str, str | bytes] = {
    "attrdict/__init__.py": "from attrdict.dictionary import AttrDict\n",
    "attrdict/dictionary.py": (
        "from attrdict import default, mapping, merge\nfrom attrdict.mixins import MutableAttr\n\n\n"
        "class AttrDict(dict, MutableAttr):\n    pass\n"
    ),
    "attrdict/default.py": (
        '"""\nA subclass of MutableAttr that has defaultdict support.\n"""\nfrom collections import Mapping\n'
    ),
    "attrdict/mapping.py": '"""\nAn implementation of MutableAttr.\n"""\nfrom collections import Mapping\n',
    "attrdict/merge.py": '"""\nA right-favoring Mapping merge.\n"""\nfrom collections import Mapping\n',
    "attrdict/mixins.py": (
        '"""\nMixin Classes for Attr-support.\n"""\nfrom abc import ABCMeta, abstractmethod\n'
        "from collections import Mapping, MutableMapping, Sequence\nimport re\n\n\n"
        "class MutableAttr(MutableMapping):\n    def __getattr__(self, key):\n        return self[key]\n"
    ),
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with an active environment in ``.venv``; the working directory."""
    folder = tmp_path / "project"
    (folder / "patches").mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / ".venv")], check=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("VIRTUAL_ENV", str(folder / ".venv"))
    return folder


def site_packages(folder: Path) -> Path:
    (found,) = folder.glob(".venv/lib/python3*/site-packages")
    return found


def test_the_tutorial_runs_and_prints_what_it_shows(project: Path) -> None:
    def install() -> None:
        for path in ATTRDICT:
            (site_packages(project) / path).unlink(missing_ok=True)
        make_dist(site_packages(project), "attrdict", "2.0.1", ATTRDICT)

    console = Console(project, install)
    commands = 0
    for block in blocks(document("docs/tutorial.md")):
        if block.language == "toml":
            assert block.title is not None
            (project / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            console.check(block, "tutorial.md")
            commands += block.text.count("$ patchkit")
    assert commands > 15
    for path, content in ATTRDICT.items():
        assert (site_packages(project) / path).read_bytes() == (
            content if isinstance(content, bytes) else content.encode()
        )


#: greeting 1.4 and 1.5, whose method has another name.
SPEAK = (
    "class Speaker:\n    def greet(self, name):\n"
    '        name = name.strip()\n        words = "Hey"\n        words = words + ", "\n        return words + name\n\n'
    "    def stop(self):\n        pass\n"
)
GREETING = {"1.4": SPEAK, "1.5": SPEAK.replace("def greet", "def hello")}


def test_a_hand_edit_becomes_a_patch_that_is_carried_through_an_upgrade(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version, text in GREETING.items():
        make_wheel(tmp_path / "index", "greeting", version, {"greeting/speak.py": text})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PATCHKIT_CACHE", str(tmp_path / "cache"))
    versions = iter(GREETING.items())

    def install() -> None:
        for old in site_packages(project).glob("greeting*"):
            shutil.rmtree(old)
        version, text = next(versions)
        make_dist(site_packages(project), "greeting", version, {"greeting/speak.py": text})

    install()
    console = Console(project, install)
    section = document("docs/how-to.md").split("\n## Keep a hand edit", 1)[1].partition("\n## ")[0]
    for block in blocks(section):
        assert block.language == "console"
        console.check(block, "how-to.md, a hand edit,")
    assert next(versions, None) is None
    assert (site_packages(project) / "greeting/speak.py").read_text() == GREETING["1.5"].replace("Hey", "Good day")


def test_the_readmes_patch_does_what_the_tutorials_does(project: Path) -> None:
    make_dist(site_packages(project), "attrdict", "2.0.1", ATTRDICT)
    (readme,) = [block.text for block in blocks(document("README.md")) if block.language == "toml"]
    *_, tutorial = [b.text for b in blocks(document("docs/tutorial.md")) if b.title and b.title.startswith("patches/")]
    results = []
    for text in (readme, tutorial):
        (project / "patches" / "attrdict-collections-abc.toml").write_text(text, encoding="utf-8")
        assert main(["apply", "attrdict-collections-abc"]) == 0
        results.append([(site_packages(project) / path).read_bytes() for path in ATTRDICT])
        assert main(["revert", "--all"]) == 0
    assert results[0] == results[1]
    assert b"from collections.abc import Mapping, MutableMapping, Sequence\n" in results[0][-1]


def test_the_examples_from_python_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_dist(site_packages(project), "attrdict", "2.0.1", ATTRDICT)
    *_, patch = [b for b in blocks(document("docs/tutorial.md")) if b.title and b.title.startswith("patches/")]
    (project / str(patch.title)).write_text(patch.text, encoding="utf-8")
    first, whole, last = [b.text for b in blocks(document("docs/python-api.md")) if b.language == "python"]
    sys.path.insert(0, str(site_packages(project)))
    try:
        with pytest.raises(patchkit.PatchkitError, match="attrdict-collections-abc"):
            exec(first, {})
        exec(whole, {})
        assert capsys.readouterr().out.split("\n")[-3:] == ["applied 4", "attrdict-collections-abc applied True", ""]
        exec(last, {})
        assert capsys.readouterr().out.startswith("not-applied 5\n")
        assert main(["apply", "attrdict-collections-abc"]) == 0
        exec(first, {})
    finally:
        sys.path.remove(str(site_packages(project)))


def test_the_functions_are_those_of_the_package() -> None:
    text = document("docs/python-api.md")
    signatures = {ticked(row[0])[0] for row in rows(text, "## The commands as functions") if ticked(row[0])}
    functions = [name for name in patchkit.__all__ if inspect.isfunction(getattr(patchkit, name))]
    assert {signature.partition("(")[0] for signature in signatures} == set(functions)
    for signature in signatures:
        name = signature.partition("(")[0]
        shown = ast.parse(f"def {signature}: ...").body[0]
        assert isinstance(shown, ast.FunctionDef)
        actual = inspect.signature(getattr(patchkit, name))
        arguments = shown.args
        named = [
            *arguments.posonlyargs,
            *arguments.args,
            *([arguments.vararg] if arguments.vararg else []),
            *arguments.kwonlyargs,
        ]
        assert [argument.arg for argument in named] == list(actual.parameters)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            assert default is not None
            assert ast.literal_eval(default) == actual.parameters[argument.arg].default


# --- on the real releases


@pytest.mark.real
def test_what_the_readme_shows_every_day_is_what_the_release_prints(project: Path) -> None:
    wheel = released_wheel("tpu-inference", "0.32.0")

    def install() -> None:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site_packages(project))

    install()
    console = Console(project, install)
    for block in blocks(document("README.md")):
        if block.language == "console":
            console.check(block, "README.md")


@pytest.mark.real
def test_the_tutorials_patch_fits_the_real_release(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    *_, patch = [b for b in blocks(document("docs/tutorial.md")) if b.title and b.title.startswith("patches/")]
    (project / str(patch.title)).write_text(patch.text, encoding="utf-8")
    assert main(["--json", "try", "attrdict-collections-abc"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["version"], answer["differing"]) == ("2.0.1", [])
