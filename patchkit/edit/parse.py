"""What all that reads Python has in common: the parser's type, what it raises, and what counts as a blank."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast

Parse = Callable[[str], "ast.Module"]
"""``ast.parse`` by the site's grammar; raises any of :data:`PARSE_ERRORS`."""

PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
"""What a parser may raise on a text (ValueError: a NUL byte, a surrogate; OverflowError: a huge number)."""

BLANKS = " \t\f"
"""What may stand before the first token of a line (Python reference, 2.1.8 and 2.1.9)."""
