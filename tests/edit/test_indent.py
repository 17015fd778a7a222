"""Taking indentation off."""

from __future__ import annotations

import pytest

from patchkit.edit.indent import dedent


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    a\n\n      b\n", "a\n\n  b\n"),
        ("\ta\n    b\n", "\ta\n    b\n"),
        ("    a(\n  b)\n", "a(\nb)\n"),
        ("    a = '''\n  b'''\n", "a = '''\n  b'''\n"),
        ("  # only\n", "# only\n"),
    ],
)
def test_dedent_takes_only_what_the_statements_share(text: str, expected: str) -> None:
    assert dedent(text) == expected
