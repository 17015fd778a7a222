"""What a single value of a patch file must be, beyond its type.

Each check takes one string and returns None, or a :class:`Complaint` in words that follow "file:line: key: ".
"""

from __future__ import annotations

import re
from collections.abc import Callable

from patchkit.model.keys import BODY
from patchkit.model.requirement import parse_requirement
from patchkit.tuples import NamedTuple
from patchkit.visible import visible

# C0 and C1 controls; the marks, overrides and isolates that reorder text on a screen (UAX #9); U+2028 and U+2029,
# which some terminals and loggers take for line breaks; the byte order mark.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_MAX_SPECIFIER = 1000
COMPILED = (".pyc", ".pyo", ".pyd", ".so", ".dll", ".dylib")
# What differs between hosts so much that comparing it may fail on one alone.
_ANY_HOST = {"extra": "", "platform_release": "6.1", "platform_version": "1"}


class Complaint(NamedTuple):
    """What is wrong with a value, and the value that was probably meant."""

    message: str
    suggestion: str | None = None


def quote(text: str, limit: int = 80) -> str:
    """``text`` in double quotes for a message, safe to print: made visible, cut off after ``limit`` characters."""
    shown = text if len(text) <= limit else text[: limit - 3] + "..."
    return '"' + visible(shown.replace("\\", "\\\\").replace('"', '\\"'), toml=True) + '"'


def line(text: str) -> Complaint | None:
    """One line that is printed to terminals: no control characters, nothing that reorders text."""
    if not text.strip():
        return Complaint("must not be empty")
    if "\n" in text:
        return Complaint("must be one line")
    return _unprintable(text)


def prose(text: str) -> Complaint | None:
    """Lines that are printed to terminals: of the controls only newline and tab."""
    return _unprintable(text.replace("\n", " ").replace("\t", " "))


def _unprintable(text: str) -> Complaint | None:
    found = _UNPRINTABLE.search(text)
    if not found:
        return None
    return Complaint(f"holds U+{ord(found.group()):04X}, a character that controls terminals")


def argument(text: str) -> Complaint | None:
    """What is handed to a program, as an argument or in its environment."""
    return Complaint("holds U+0000, which no program can be given") if "\0" in text else None


def code(text: str) -> Complaint | None:
    """Python: something must be in it. Whether it parses is for ``lint`` and the plan."""
    return None if text.strip() else Complaint("must not be blank")


def body(text: str) -> Complaint | None:
    """A ``wrap`` template."""
    count = len(re.findall(BODY, text))
    if count == 1:
        return None
    return Complaint(f"must hold $$$BODY exactly once, found {count or 'none'}")


def name(text: str) -> Complaint | None:
    """A patch name or a tag."""
    if re.fullmatch("[a-z0-9][a-z0-9-]*", text):
        return None
    better = re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")
    return Complaint(
        f"{quote(text)} is not made of lower-case letters, digits and hyphens, beginning with a letter or digit",
        better or None,
    )


def qualname(text: str) -> Complaint | None:
    """A ``scope``: names of classes and functions, as ``__qualname__`` has them without ``<locals>``."""
    plain = text.replace(".<locals>", "")
    valid = all(part.isidentifier() for part in plain.split("."))
    if valid and plain == text:
        return None
    return Complaint(
        f"{quote(text)} is not a dotted chain of class and function names such as Class.method",
        plain if valid else None,
    )


def specifier(text: str) -> Complaint | None:
    """PEP 440 version specifiers, separated by commas."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    unfit = _unprintable(text) or _overlong(text)
    if unfit:
        return unfit
    try:
        if len(SpecifierSet(text)):
            return None
    except InvalidSpecifier:
        from packaging.version import InvalidVersion, Version

        try:
            return Complaint(f"{quote(text)} is a version, not a PEP 440 version specifier", f"=={Version(text)}")
        except InvalidVersion:
            pass
    return Complaint(f'{quote(text)} is not a PEP 440 version specifier such as ">=0.23,<0.30"')


def requirement(text: str) -> Complaint | None:
    """A PEP 508 requirement that can be held against what is installed: no URL, no extras."""
    unfit = _unprintable(text) or _overlong(text)
    if unfit:
        return unfit
    try:
        parsed = parse_requirement(text)
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0] if isinstance(error, ValueError) else "nested too deeply"
        return Complaint(f"{quote(text)} is not a PEP 508 requirement: {reason}")
    if parsed.url:
        return Complaint(f"{quote(text)} names a URL: a guard is a name, version specifiers and a marker")
    if parsed.extras:
        extras = ",".join(parsed.extras)
        return Complaint(
            f"extras such as [{extras}] cannot be told from what is installed: name the distribution alone"
        )
    if parsed.marker is not None:
        try:
            parsed.marker.evaluate(_ANY_HOST)
        except (ValueError, RecursionError) as error:
            reason = str(error).partition("\n")[0] if isinstance(error, ValueError) else "nested too deeply"
            return Complaint(f"{quote(text)} has a marker that cannot be evaluated anywhere: {reason}")
    return None


def _overlong(text: str) -> Complaint | None:
    # Python refuses to read integers of more than 4,300 digits, and packaging reads them only when it compares.
    return Complaint(f"is longer than {_MAX_SPECIFIER} characters") if len(text) > _MAX_SPECIFIER else None


def path(text: str) -> Complaint | None:
    """A file of the distribution, as RECORD names it: relative to site-packages, POSIX separators, nowhere else."""
    shown = quote(text)
    if "\\" in text:
        better = text.replace("\\", "/")
        return Complaint(
            f"{shown} has a backslash: paths are written with / as in RECORD", None if path(better) else better
        )
    if _UNPRINTABLE.search(text):
        return Complaint(f"{shown} holds a control character")
    if not text.isprintable():
        return Complaint(f"{shown} holds an invisible character, which makes two names look alike")
    if ":" in text:
        return Complaint(f"{shown} has a drive letter or a colon: paths are relative to site-packages")
    if text.startswith("~"):
        return Complaint(f"{shown} begins with ~, a home directory: paths are relative to site-packages")
    if text.startswith("/"):
        return Complaint(f"{shown} is absolute: paths are relative to site-packages, as in RECORD")
    segments = text.split("/")
    if ".." in segments:
        return Complaint(f"{shown} leads out of the distribution (..)")
    if "" in segments or "." in segments:
        better = "/".join(part for part in segments if part not in ("", "."))
        return Complaint(
            f"{shown} has an empty or . segment: paths are written as in RECORD", better if better else None
        )
    if "__pycache__" in segments or text.lower().endswith(COMPILED):
        return Complaint(f"{shown} is compiled code, or its place: patch the source")
    if any(part[-1] in ". " for part in segments):
        return Complaint(f"{shown} has a segment that ends in a dot or a space, which Windows drops")
    first = segments[0].lower()
    if first == ".patchkit":
        return Complaint(f"{shown} lies in patchkit's own records, which no patch may change")
    if first.endswith(".dist-info"):
        return Complaint(
            f"{shown} lies in the installer's records, the witness of the pristine bytes, which no patch may change"
        )
    return None


CHECKS: dict[str, Callable[[str], Complaint | None]] = {
    "line": line,
    "prose": prose,
    "code": code,
    "argument": argument,
    "body": body,
    "name": name,
    "qualname": qualname,
    "specifier": specifier,
    "requirement": requirement,
    "path": path,
}
"""The checks that :class:`patchkit.model.keys.Key` names."""
