"""The help: whole, at 80 columns, with an example of every command that is itself right."""

from __future__ import annotations

import shlex

import pytest

from patchkit.cli.commands import COMMANDS, GROUPS
from patchkit.cli.main import main
from patchkit.cli.output import Output
from patchkit.cli.parser import parse


def text_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main([*arguments, "--help"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_the_help_of_patchkit(capsys: pytest.CaptureFixture[str]) -> None:
    text = text_of(capsys)
    assert text.startswith("usage: patchkit [-h] [--python EXE] [--site DIR] [--patches DIR] [--json]\n")
    assert text.endswith(
        """
examples:
  patchkit try logits-greedy        the whole life of a patch, on a throwaway site
  patchkit --python ~/vllm/bin/python apply logits-greedy
  patchkit --python ~/vllm/bin/python check         exit 1 when something drifted
  patchkit --python ~/vllm/bin/python revert --all

The site is, in this order: --site, --python, $PATCHKIT_PYTHON, the active virtual
environment, the interpreter that patchkit runs in. Global options may stand before
or behind the command. `patchkit COMMAND --help` has an example of each command.

exit codes: 0 done or clean; 1 findings; 2 wrong use or a wrong patch file;
3 a guard refused; 4 an anchor or condition failed; 5 the site conflicts;
6 inconclusive; 70 a fault of patchkit
"""
    )
    for name in COMMANDS:
        assert f"\n    {name} " in text


def test_the_help_of_apply(capsys: pytest.CaptureFixture[str]) -> None:
    assert text_of(capsys, "apply") == (
        """\
usage: patchkit apply [-h] [--python EXE] [--site DIR] [--patches DIR] [--json]
                      [--color auto|always|never] [--dry-run] [--diff] [--fetch]
                      [--allow-known-bad]
                      NAME [NAME ...]

Apply patches, all or none. One that is applied is left alone; one whose file
changed is put in anew.

positional arguments:
  NAME                    a patch, by name or by the path of its file

options:
  -h, --help              show this help message and exit
  --dry-run               plan and report, write nothing
  --diff                  show the unified diff of what is written
  --fetch                 take a file's original from the released wheel, where
                          nothing else has it
  --allow-known-bad       accept patches tagged known-bad

global options:
  --python EXE            the target environment's interpreter, or its folder
  --site DIR              the target site-packages folder
  --patches DIR           a folder of patch files, looked in first; may be
                          repeated
  --json                  print one JSON object to stdout, nothing else
  --color auto|always|never
                          colour (default: on a terminal)

example:
  patchkit apply logits-greedy --diff
  patchkit --python ~/vllm/bin/python apply logits-greedy --dry-run --json
"""
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = text_of(capsys, name)
    assert text.startswith(f"usage: patchkit {name} ")
    examples = text.split("\nexample:\n", 1)[1].splitlines()
    assert examples
    for line in examples:
        words = shlex.split(line.strip().split("     ")[0].split(" > ")[0])
        assert words[0] == "patchkit"
        arguments = parse(words[1:], Output(json_mode=False, color="never"))
        assert arguments is not None
        assert arguments.command == name


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_the_help_fits_into_84_columns(name: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    for line in text_of(capsys, *([name] if name else [])).splitlines():
        assert len(line) <= 84, line


def test_the_groups_hold_every_command_once() -> None:
    assert sorted(name for _, group in GROUPS for name in group) == sorted(COMMANDS)
