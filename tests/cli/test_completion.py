"""Shell completion: patch names."""

from __future__ import annotations

import argparse
import sys
import types

import pytest
from support.bench import Bench

from patchkit.cli.completion import complete, patch_names
from patchkit.cli.parser import build_parser

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'


def test_names_are_completed(bench: Bench) -> None:
    for name in ("double", "double-b", "util"):
        bench.patch(name, DOUBLE)
    arguments = argparse.Namespace(patches=[str(bench.patches)], patches_behind=None)
    assert patch_names("dou", arguments) == ["double", "double-b"]
    arguments = argparse.Namespace(patches=None, patches_behind=[str(bench.patches)])
    assert patch_names("u", arguments) == ["util"]
    assert patch_names("zzz", arguments) == []


def test_a_wrong_folder_completes_nothing(bench: Bench) -> None:
    assert patch_names("d", argparse.Namespace(patches=["nowhere"])) == []


def test_every_name_has_a_completer(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[argparse.ArgumentParser] = []
    fake = types.ModuleType("argcomplete")
    fake.autocomplete = seen.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "argcomplete", fake)
    parser = build_parser(None)
    complete(parser)
    assert seen == [parser]
    completed = set()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                if any(getattr(option, "completer", None) is patch_names for option in sub._actions):
                    completed.add(name)
    assert completed >= {"apply", "revert", "check", "show", "diff", "lint", "try"}


def test_nothing_happens_without_argcomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    complete(build_parser(None))
