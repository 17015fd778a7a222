"""docs/rebench.md: its session runs and prints what it shows; the options and files are those that there are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.dists import make_dist
from support.documents import Console, blocks, document

TEXT = document("docs/rebench.md")
#: idna 3.7, cut down to the lines that the document's patches touch, indented as they are there.
CORE = '''\
from typing import Union


def alabel(label: str) -> bytes:
    return b"xn--" + label.encode("punycode")


def encode(s: Union[str, bytes, bytearray], strict: bool = False) -> bytes:
    """Encode a domain name."""
    result = []
    for label in s.split("."):
        s = alabel(label)
        if s:
            result.append(s)
    return b".".join(result)
'''


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the document's files, an active environment in ``.venv`` and idna in it; the working directory."""
    folder = tmp_path / "project"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / ".venv")], check=True)
    (site,) = folder.glob(".venv/lib/python3*/site-packages")
    make_dist(site, "idna", "3.7", {"idna/__init__.py": "from .core import alabel, encode\n", "idna/core.py": CORE})
    for block in blocks(TEXT):
        if block.title is not None:
            path = folder / block.title
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("VIRTUAL_ENV", str(folder / ".venv"))
    return folder


def test_the_session_is_what_is_printed(project: Path) -> None:
    console = Console(project, lambda: None)
    section = TEXT.split("## In a minute, on any machine", 1)[1].split("\n## ", 1)[0]
    for block in blocks(section):
        if block.language == "console":
            console.check(block, "docs/rebench.md")
