"""docs/study.md: its experiment is run as it stands there, and says what stands there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.documents import ROOT, blocks, document

TEXT = document("docs/study.md")


def test_the_replay_says_what_the_page_says(tmp_path: Path) -> None:
    titled = {block.title: block.text for block in blocks(TEXT) if block.title}
    for name in ("replay.py", "replay.toml"):
        (tmp_path / name).write_text(titled[name])
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    site = tmp_path / "site-packages"
    site.mkdir()
    (command,) = [line.removeprefix("$ ") for line in titled["replay"].splitlines()]
    words = [sys.executable, "-m", "patchkit", "--site", str(site), *command.split()[1:]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    (shown,) = [block.text for block in blocks(TEXT) if block.language == "text"]
    assert shown in done.stdout
    assert "6 runs (2 pairs, 2 discarded)" in done.stdout


def test_the_figures_are_consistent() -> None:
    """19,320 to 14,258 is 26.2 %, 275 to 1,209 ms is x4.40; the operations are 13 % of a step of 26.5 ms."""
    assert round((1 - 14258 / 19320) * 100, 1) == 26.2
    assert round(1209 / 275, 2) == 4.4
    assert round((1.232 + 1.562 + 0.696) / 26.5, 2) == 0.13
