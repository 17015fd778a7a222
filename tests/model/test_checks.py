"""Values on their own, as far as the files of test_load do not show them."""

from __future__ import annotations

import pytest

from patchkit.model import checks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", '"a"'),
        ('a"\\', '"a\\"\\\\"'),
        ("a\n\t", '"a\\n\\t"'),
        ("\x1b[0m", '"\\u001b[0m"'),
        ("\u202e", '"\\u202e"'),
        ("x" * 80, '"' + "x" * 80 + '"'),
        ("x" * 81, '"' + "x" * 77 + '..."'),
        ("é", '"é"'),
    ],
)
def test_quote(text: str, expected: str) -> None:
    assert checks.quote(text) == expected


@pytest.mark.parametrize(
    "character", ["\0", "\x7f", "\x85", "\u061c", "\u200e", "\u200f", "\u2028", "\u202a", "\u2069"]
)
def test_characters_that_terminals_obey(character: str) -> None:
    expected = checks.Complaint(f"holds U+{ord(character):04X}, a character that controls terminals")
    assert checks.line(f"a{character}b") == expected
    assert checks.prose(f"a{character}b") == expected
    assert checks.requirement(f"a; python_version > '{character}'") == expected
    assert checks.specifier(f"==={character}") == expected


def test_text_that_is_fine() -> None:
    assert checks.line("Ünïcödé — 日本語 🙂") is None
    assert checks.prose("a\n\tb\n") is None


@pytest.mark.parametrize("text", [">=1", "==1.*", "~=1.4.2", ">=1,<2", "===weird", "!=1.0rc1", ">=0.23 , <0.30"])
def test_specifiers(text: str) -> None:
    assert checks.specifier(text) is None


@pytest.mark.parametrize("text", ["", ",", "x", "=>1", ">=", "1.x", ">=1 <2"])
def test_no_specifiers(text: str) -> None:
    complaint = checks.specifier(text)
    assert complaint is not None
    assert complaint.suggestion is None
    assert complaint.message == f'"{text}" is not a PEP 440 version specifier such as ">=0.23,<0.30"'


def test_numbers_too_long_to_read() -> None:
    assert checks.specifier(">=" + "1" * 5_000) == checks.Complaint("is longer than 1000 characters")
    assert checks.requirement("a>=" + "1" * 5_000) == checks.Complaint("is longer than 1000 characters")


def test_markers_nested_too_deeply() -> None:
    complaint = checks.requirement("a; " + "(" * 990)
    assert complaint is not None
    assert " is not a PEP 508 requirement: " in complaint.message


@pytest.mark.parametrize("marker", ["sys_platform ~= 'linux'", "os_name === 'x' and python_version > '3.0'"])
def test_a_marker_that_cannot_be_evaluated(marker: str) -> None:
    complaint = checks.requirement(f"a>=1; {marker}")
    assert complaint is not None
    assert " has a marker that cannot be evaluated anywhere: Undefined " in complaint.message


@pytest.mark.parametrize("marker", ["sys_platform == 'nowhere'", "platform_release >= '5'", "extra == 'x'"])
def test_a_marker_that_holds_elsewhere_is_fine(marker: str) -> None:
    assert checks.requirement(f"a; {marker}") is None
