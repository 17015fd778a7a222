"""The README's terminal shows what the commands really print."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from support.documents import ROOT

pytestmark = pytest.mark.real


def test_the_recording_is_what_the_commands_print_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["record.py", str(tmp_path / "terminal.svg")])
    runpy.run_path(str(ROOT / ".ci" / "record.py"), run_name="__main__")
    made = (tmp_path / "terminal.svg").read_text(encoding="utf-8")
    assert made == (ROOT / "docs" / "terminal.svg").read_text(encoding="utf-8")
