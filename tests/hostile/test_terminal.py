"""What others wrote never steers the terminal: patch files, metadata, file names, records, code, programs."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hostile import forged
from hypothesis import given
from hypothesis import strategies as st
from support.bench import CORE, Bench
from support.dists import make_dist

from patchkit.cli.main import main
from patchkit.visible import visible

#: Colour off and on, an OSC 8 link, OSC 52 (writes the clipboard), overprinting, bidi, zero-width, separators.
EVIL = (
    "\x1b[31m\x1b]8;;http://e\x07\x1b]52;c;ZXZpbA==\x07\x9b2J\x08\x08\rok\x00\x7f\x85"
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u200b\u200d\u2060\ufeff\u2028\u2029\xad"
)
#: What a terminal may get: what is printable, line breaks, tabs, and our own colours.
OWN = re.compile(r"\x1b\[[0-9]+m")
DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 'text' é 漢", "plain 'text' é 漢"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\u202eb", "a\\u202eb"),
        ("\tx", "\\tx"),
        ("a\nb\rc", "a\\nb\\x0dc"),
        ("a\xa0b\u200bc", "a\\xa0b\\u200bc"),
        ("bad \udcff byte", "bad \\udcff byte"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_what_a_terminal_would_obey_becomes_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_what_is_kept_and_what_toml_reads() -> None:
    assert visible("a\tb\n\x1b", keep="\t\n") == "a\tb\n\\x1b"
    assert visible("\x1b\u202e\U000e0001\n", toml=True) == "\\u001b\\u202e\\U000e0001\\n"


@given(st.text())
def test_visible_text_is_always_printable(text: str) -> None:
    assert visible(text).isprintable()
    assert visible(text, keep="\n\t").replace("\n", "").replace("\t", "").isprintable()


@pytest.fixture
def evil_site(bench: Bench) -> Bench:
    """Evil in the code, in the metadata, in names, in the ledger, in the log, in patch files."""
    code = f"# {EVIL}\n".replace("\r", "").replace("\x00", "") + CORE + f"s = '{EVIL[:20]}'\nraw = '"
    bench.files = {
        "demo/__init__.py": "",
        "demo/core.py": b"# coding: latin-1\n" + code.encode("utf-8") + b"\xff\xe9'\n",
        "demo/util.py": "X = 1\n",
    }
    bench.install("1.0")
    info = bench.site / "demo-1.0.dist-info"
    make_dist(bench.site, "other", "1\x1b[31m", {"other.py": ""}, dist_info="other-1.dist-info")
    with (info / "RECORD").open("a", encoding="utf-8", newline="") as record:
        record.write('"demo/cor\x1b[2J\u202e.py",,\n"demo/two\nlines.py",,\n')
    for name, anchor in (("none", "nothing" + EVIL), ("many", "result"), ("near", "y = x + x\x1b[31m  # c")):
        bench.patch(name, f'[[edit]]\nfile = "demo/core.py"\nfind = {json.dumps(anchor)}\nreplace = ""\n')
    for key in ("name", "summary", "description", "links", "otherwise", "file", "scope", "match", "inside", "versions"):
        value = json.dumps(EVIL if key != "links" else [EVIL])
        bench.patch(f"evil-{key}", f'[[edit]]\nfile = "demo/core.py"\n{key} = {value}\nfind = "x"\nreplace = "y"\n')
        (bench.patches / f"top-{key}.toml").write_text(f"schema = 1\n{key} = {value}\n{json.dumps(EVIL)} = {value}\n")
    (bench.patches / "raw.toml").write_bytes(b"a = \x1b[31m\x08\n")
    (bench.patches / "bad\x1b[31m\nerror: forged\u202e.toml").write_text("nonsense\x1b[2J")
    bench.patch("double", DOUBLE)
    return bench


def everything(bench: Bench) -> list[list[str]]:
    """Every command that looks, with what is right and with what is not."""
    names = sorted(path.stem for path in bench.patches.glob("*.toml"))
    return [
        ["lint"],
        ["list"],
        ["check"],
        ["check", *names],
        ["doctor"],
        ["diff"],
        ["log"],
        ["sync", "--dry-run"],
        ["apply", EVIL.replace("\x00", "")],
        *(["show", name] for name in names),
        *(["apply", name, "--dry-run", "--diff"] for name in names),
        ["revert", "--all", "--dry-run", "--diff"],
    ]


def run_in_terminal(bench: Bench, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    out, err = Terminal(), Terminal()
    with monkeypatch.context() as context:
        context.setenv("TERM", "xterm")
        context.setattr(sys, "stdout", out)
        context.setattr(sys, "stderr", err)
        status = main(["--site", str(bench.site), "--patches", str(bench.patches), *arguments])
    assert status in range(7), (arguments, out.getvalue(), err.getvalue())
    # A status line overprints itself: that is ours.
    return out.getvalue() + re.sub(r"\r[^\r\n]*\r", "", err.getvalue())


def assert_harmless(text: str, arguments: list[str]) -> None:
    plain = OWN.sub("", text)
    bad = {char for char in plain if not char.isprintable() and char not in "\n\t"}
    assert not bad, (arguments, [hex(ord(char)) for char in bad])
    assert not any(line.startswith("error: forged") for line in plain.split("\n")), arguments


def test_no_command_prints_what_steers(evil_site: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = evil_site
    assert bench("apply", "double").status == 0
    look_at_all(bench, monkeypatch)
    evil = f"Metadata-Version: 2.1\nName: demo\nVersion: 1.0+{EVIL}\nSummary: {EVIL}\n"
    (bench.site / "demo-1.0.dist-info" / "METADATA").write_text(evil)
    look_at_all(bench, monkeypatch)


def look_at_all(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in everything(bench):
        assert_harmless(run_in_terminal(bench, arguments, monkeypatch), arguments)
        run = bench("--json", *arguments)
        assert run.out.isascii(), arguments
        assert run.out.replace("\n", "").isprintable(), arguments
        assert json.loads(run.out)["command"]
        assert_harmless(run.err, arguments)
    core = bench.site / "demo/core.py"
    core.write_bytes(core.read_bytes() + EVIL.encode())
    for arguments in (["check"], ["diff"], ["revert", "double", "--force", "--dry-run"]):
        assert_harmless(run_in_terminal(bench, arguments, monkeypatch), arguments)


def test_a_forged_ledger_and_log_print_nothing_that_steers(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    text = EVIL + "\nerror: forged"
    digest = forged.blob(bench.site, bench.patch("p1", DOUBLE).read_bytes())
    members = {"summary": text, "distribution": text, "version": text, "info": None, "requirement": text}
    entry = forged.ledger_patch(digest, ["demo/core.py"], **members, name=text, source="/x" + text)
    forged.ledger(bench.site, [entry], {"demo/core.py": forged.ledger_file(CORE.encode(), b"x")})
    event = dict.fromkeys(("command", "user", "time", "result", "tx"), text)
    log = bench.site / ".patchkit" / "log.jsonl"
    log.write_text(json.dumps({**event, "patches": [text], "files": 1}) + "\n" + json.dumps({"command": [1]}) + "\n")
    for arguments in (["check"], ["list"], ["log"], ["diff"], ["doctor"], ["revert", "--all"], ["sync"]):
        assert_harmless(run_in_terminal(bench, arguments, monkeypatch), arguments)


def test_an_interpreter_that_prints_what_steers(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nprintf '\\033[31m\\033]52;c;ZXZpbA==\\007evil\\r\\b'\nexit 3\n")
    fake.chmod(0o755)
    out, err = Terminal(), Terminal()
    with monkeypatch.context() as context:
        context.setattr(sys, "stdout", out)
        context.setattr(sys, "stderr", err)
        assert main(["--python", str(fake), "check"]) == 5
    assert_harmless(out.getvalue() + err.getvalue(), ["check"])
    assert "evil" in err.getvalue()


def test_a_diff_into_a_pipe_is_the_very_bytes(bench: Bench, tmp_path: Path) -> None:
    """Also of bytes that are no UTF-8, of carriage returns and of escapes: `git apply` makes the file of it."""
    before = b"# coding: latin-1\r\ny = '\xe9'\r\nx = 1  # \x1b[31m\xe2\x80\xae\r\nlast = '\xff'"
    bench.files = {"demo/__init__.py": "", "demo/core.py": before}
    bench.install("1.0")
    path = bench.patch("two", '[[edit]]\nfile = "demo/core.py"\nfind = "x = 1"\nreplace = "x = 2"\n')
    command = [sys.executable, "-m", "patchkit", "--site", str(bench.site), "apply", str(path), "--diff", "--dry-run"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, check=True, env=environment, cwd=tmp_path)
    work = tmp_path / "tree"
    (work / "demo").mkdir(parents=True)
    (work / "demo/core.py").write_bytes(before)
    apply = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(apply, cwd=work, input=done.stdout, check=True, env={**os.environ, "GIT_DIR": str(tmp_path / "no")})
    assert (work / "demo/core.py").read_bytes() == before.replace(b"x = 1", b"x = 2")
