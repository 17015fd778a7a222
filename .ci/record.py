"""Records the README's terminal: real commands on a released wheel in a throwaway environment, drawn as an SVG.

``python .ci/record.py docs/terminal.svg``. It needs ``rich`` (the extra ``dev``) and an index that has tpu-inference.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

RELEASE = "tpu-inference==0.32.0"
WIDTH = 88
#: What is typed, and what it must end with.
STEPS: tuple[tuple[str, int], ...] = (
    ("patchkit apply logits-greedy", 0),
    ("patchkit check", 0),
    (f"pip install --quiet --force-reinstall --no-deps {RELEASE}", 0),
    ("patchkit check", 1),
    ("patchkit sync", 0),
    ("patchkit revert logits-greedy", 0),
)
THEME = TerminalTheme(
    (18, 22, 28),
    (222, 226, 232),
    [(18, 22, 28), (240, 113, 120), (126, 211, 133), (230, 190, 90), (110, 160, 240), (200, 140, 230), (95, 205, 215)],
    [(120, 130, 140)] * 8,
)
#: No font is fetched: an image on a page may not, and a terminal's own is what people know.
FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="a terminal">
<style>.{unique_id}-matrix {{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:{char_height}px;
line-height:{line_height}px}}{styles}</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>{lines}</defs>
{chrome}<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def record() -> str:
    """The SVG.

    Raises:
        RuntimeError: A command ended with another status than it should.
    """
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as scratch:
        env = os.path.join(scratch, "env")
        subprocess.run([sys.executable, "-m", "venv", env], check=True)
        pip = [os.path.join(env, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", "--ignore-requires-python", RELEASE], check=True)
        for typed, status in STEPS:
            console.print(Text.assemble(("$ ", "bold green"), (typed, "bold")))
            words = typed.split()
            if words[0] == "pip":
                command = [*pip, "--ignore-requires-python", *words[3:]]
            else:
                program = shutil.which("patchkit", path=os.path.dirname(sys.executable)) or "patchkit"
                command = [program, "--color", "always", *words[1:]]
            done = subprocess.run(
                command,
                cwd=scratch,
                env={**os.environ, "VIRTUAL_ENV": env, "COLUMNS": str(WIDTH)},
                stdout=subprocess.PIPE,
                # What pip says of this machine's indexes is of no interest to readers.
                stderr=subprocess.DEVNULL if words[0] == "pip" else subprocess.STDOUT,
                text=True,
                check=False,
            )
            if done.returncode != status:
                raise RuntimeError(f"{typed} ended with {done.returncode}: {done.stdout}")
            console.print(Text.from_ansi(done.stdout.rstrip("\n").replace(scratch, "~")), soft_wrap=True)
    drawn = console.export_svg(title="patchkit", theme=THEME, code_format=FORMAT, unique_id="patchkit")
    return re.sub(r"[ \t]+\n", "\n", drawn)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(record(), encoding="utf-8")
