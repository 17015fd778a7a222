"""The one place where text of others becomes safe to print: names, files, code, what programs say.

Stands below all rooms, as ``errors.py`` does; ``tests/hostile/test_terminal.py`` prints every kind of text through
every command.
"""

from __future__ import annotations

_SHORT = {"\n": "\\n", "\t": "\\t"}


def visible(text: str, *, keep: str = "", toml: bool = False) -> str:
    """``text`` with every character that a terminal would obey, or would not show, as an escape that can be read.

    That is what ``str.isprintable`` refuses: controls, escape sequences, bidirectional overrides and isolates,
    zero-width characters, line separators, lone surrogates, blanks but the plain one, unassigned characters.

    Args:
        text: What somebody else wrote.
        keep: Of those the characters that stay: ``"\\n\\t"`` where lines are printed.
        toml: In the form that TOML reads, which has no ``\\x1b``.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else _escaped(char, toml) for char in text)


def _escaped(char: str, toml: bool) -> str:
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if code < 0x100 and not toml:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
