"""Colour, terminals, closed pipes, interrupts and faults of our own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.bench import Bench

from patchkit.cli.main import main
from patchkit.cli.output import Output, visible

ROOT = Path(__file__).resolve().parents[2]
DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_color_always_and_never(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    assert bench("--color", "always", "apply", "double").out == (
        "\x1b[32mapplied\x1b[0m \x1b[1mdouble\x1b[0m  (demo 1.0)\n  demo/core.py:6\n"
    )
    assert bench("check", "--color=always").out == "double  \x1b[32mapplied    \x1b[0m demo 1.0\n"
    assert "\x1b" not in bench("check", "--color=never").out
    assert "\x1b" not in bench("check").out  # off a terminal
    assert bench("--color=always", "apply", "x").err.startswith("\x1b[31merror\x1b[0m: no patch named x\n\x1b[36mhint")


def test_a_diff_in_colour(bench: Bench) -> None:
    bench.patch("util", '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1\\n"\nreplace = "X = 2\\n"\n')
    run = bench("--color=always", "apply", "util", "--diff")
    assert run.out.split("\n\n", 1)[1] == (
        "\x1b[1m--- a/demo/util.py\x1b[0m\n"
        "\x1b[1m+++ b/demo/util.py\x1b[0m\n"
        "\x1b[36m@@ -1,3 +1,3 @@\x1b[0m\n"
        "\x1b[31m-X = 1\x1b[0m\n"
        "\x1b[32m+X = 2\x1b[0m\n"
        " Y = 2\n"
        " Z = 3\n"
    )


def test_auto_on_a_terminal(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["--site", str(bench.site), "check"]
    bench("apply", str(bench.patch("double", DOUBLE)))
    for variables, colored in (
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),  # no-color.org: only when not empty
        ({"TERM": "dumb"}, False),
    ):
        with monkeypatch.context() as context:
            context.setenv("TERM", "xterm")
            for name, value in variables.items():
                context.setenv(name, value)
            terminal = Terminal()
            context.setattr(sys, "stdout", terminal)
            assert main(arguments) == 0
            assert ("\x1b[32m" in terminal.getvalue()) is colored, variables


def test_color_always_beats_no_color(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    bench("apply", str(bench.patch("double", DOUBLE)))
    assert "\x1b[32m" in bench("--color=always", "check").out


def test_json_has_no_colour(bench: Bench) -> None:
    bench("apply", str(bench.patch("double", DOUBLE)))
    assert "\\u001b" not in bench("--color=always", "--json", "check").out


def test_progress_on_a_terminal_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    output = Output(json_mode=False, color="auto")
    output.status("fetching")
    output.note("done")
    assert terminal.getvalue() == "\r" + "fetching".ljust(79) + "\r" + " " * 79 + "\rdone\n"


def test_progress_off_a_terminal_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json_mode=False, color="auto").status("fetching")
    assert capsys.readouterr() == ("", "fetching\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\rb", "a\\x0db"),
        ("\x07\x9b", "\\x07\\x9b"),
        ("\u202eevil", "\\u202eevil"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("日本", "日本"),
        ("\udcff", "\\udcff"),
    ],
)
def test_what_steers_a_terminal_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("color", ["never", "always"])
def test_names_and_texts_cannot_steer_the_terminal(bench: Bench, color: str) -> None:
    path = bench.patch("double", DOUBLE)
    path.write_text(path.read_text().replace("the patch double", "clear \\u001b[2J\\u202e"))
    (bench.patches / "bad\x1b[31m.toml").write_text("nonsense")
    for command in (
        ["list"],
        ["show", "double"],
        ["lint"],
        ["apply", "x\x1b[2J"],
        ["\x1b[2Jcheck"],
        ["check", "\x1b]0;t\x07"],
    ):
        run = bench(f"--color={color}", *command)
        text = run.out + run.err
        for own in ("\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"):
            if color == "always":
                text = text.replace(own, "")
        assert "\x1b" not in text, command
        assert "\u202e" not in text
        assert "\x07" not in text
    assert "bad\\x1b[31m" in bench(f"--color={color}", "list").out


def test_a_stream_that_cannot_show_a_character(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bench.patch("double", DOUBLE)
    path.write_text(path.read_text().replace("the patch double", "größer → 日本"), encoding="utf-8")
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="")
    monkeypatch.setattr(sys, "stdout", narrow)
    assert main(["--site", str(bench.site), "show", str(path)]) == 0
    narrow.flush()
    buffer = narrow.buffer
    assert isinstance(buffer, io.BytesIO)
    assert buffer.getvalue().startswith(b"double: gr\\xf6\\xdfer \\u2192 \\u65e5\\u672c\n")


def test_lines_stay_within_80_columns(bench: Bench) -> None:
    bench.patch("double", DOUBLE, target='otherwise = "' + "Set the environment variable instead. " * 5 + '"')
    bench.patch("later", DOUBLE, requirement="demo>=2", target='otherwise = "' + "word " * 40 + '"')
    bench.project("double", "later")
    bench("apply", "double")
    bench.write("demo/core.py", b"")
    for command in (["check"], ["list"], ["show", "double"], ["sync", "--dry-run"]):
        for line in bench(*command).out.splitlines():
            assert len(line) <= 80 or str(bench.root) in line, (command, line)


def process(bench: Bench, *words: str, **options: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "patchkit", "--site", str(bench.site), "--patches", str(bench.patches), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}  # type: ignore[dict-item]
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
        command, env=environment, cwd=bench.root / "work", stderr=subprocess.PIPE, **options
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_went_away(bench: Bench, unbuffered: str) -> None:
    """The exit status stays that of the command, and nothing is said about the pipe."""
    bench.patch("double", DOUBLE)
    for words, status in ((["schema"], 0), (["apply", "double", "--diff"], 0), (["check"], 0), (["list", "--json"], 0)):
        reading, writing = os.pipe()
        os.close(reading)
        done = process(bench, *words, stdout=writing, env={"PYTHONUNBUFFERED": unbuffered})
        os.close(writing)
        _, err = done.communicate(timeout=60)
        if words[-1] == "--json":
            assert b"Error" not in err
        else:
            assert err == b""
        assert done.returncode == status, words
    bench.write("demo/core.py", b"")
    reading, writing = os.pipe()
    os.close(reading)
    done = process(bench, "check", stdout=writing, env={"PYTHONUNBUFFERED": unbuffered})
    os.close(writing)
    assert (done.communicate(timeout=60)[1], done.returncode) == (b"", 1)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_output_that_cannot_be_written(bench: Bench, unbuffered: str, options: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = process(bench, *options, "schema", stdout=full, env={"PYTHONUNBUFFERED": unbuffered})
        _, err = done.communicate(timeout=60)
    assert done.returncode == 5
    assert b"No space left" in err
    assert b"Traceback" not in err


def test_an_interrupt(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.patch("double", DOUBLE)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("patchkit.ops.apply.plan_change", interrupt)
    run = bench("apply", "double")
    said = "interrupted; a change under way is taken back, at the latest by the next command\n"
    assert (run.status, run.out, run.err) == (130, "", said)
    run = bench.json("apply", "double")
    assert run.error == {"code": "interrupted", "message": "interrupted", "hint": None}
    assert bench.pristine()


def test_an_interrupt_in_the_middle_of_writing(bench: Bench) -> None:
    from patchkit.state import fs

    bench.patch("both", DOUBLE + '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1\\n"\nreplace = "X = 2\\n"\n')

    seen: list[str] = []

    def hook(operation: str, path: str, when: str) -> None:
        if operation == "replace" and path.endswith("core.py") and when == "after" and not seen:
            seen.append(path)
            raise KeyboardInterrupt

    with fs.observed(hook):
        assert bench("apply", "both").status == 130
    assert bench.pristine()
    assert not (bench.site / ".patchkit" / "journal.json").exists()


def test_a_fault_of_ours(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.patch("double", DOUBLE)

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("patchkit.ops.apply.plan_change", fail)
    run = bench("apply", "double")
    assert (run.status, run.out) == (70, "")
    assert run.err == (
        "error: unexpected ZeroDivisionError: oh\n"
        "hint: this is a fault of patchkit: run it again with PATCHKIT_DEBUG=1 and report what it prints\n"
    )
    run = bench.json("apply", "double")
    assert (run.status, run.error["code"]) == (70, "internal")
    monkeypatch.setenv("PATCHKIT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        bench("apply", "double")


def test_an_error_of_the_system(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.patch("double", DOUBLE)

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "/somewhere")

    monkeypatch.setattr("patchkit.ops.apply.plan_change", fail)
    run = bench.json("apply", "double")
    assert (run.status, run.error["code"], run.error["path"]) == (5, "os-error", "/somewhere")
    assert run.error["message"] == "/somewhere: No space left on device"


def test_a_full_disk_while_writing(bench: Bench) -> None:
    from patchkit.state import fs

    bench.patch("double", DOUBLE)

    def hook(operation: str, path: str, when: str) -> None:
        if operation == "replace" and path.endswith("core.py") and when == "before":
            raise OSError(28, "No space left on device", path)

    with fs.observed(hook):
        run = bench.json("apply", "double")
    assert (run.status, run.error["code"]) == (5, "no-space")
    assert "everything was put back as it was" in run.error["message"]
    assert bench.pristine()


def test_the_process_as_a_whole(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    done = process(bench, "apply", "double", "--json", stdout=subprocess.PIPE)
    out, err = done.communicate(timeout=60)
    assert (done.returncode, json.loads(out)["ok"]) == (0, True)
    assert err == b"applied double  (demo 1.0)\n  demo/core.py:6\n"
