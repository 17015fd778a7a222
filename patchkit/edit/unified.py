"""Unified diffs in bytes, as ``git apply`` and GNU patch take them."""

from __future__ import annotations

from collections.abc import Iterator

from patchkit.edit.regions import line_hunks

CONTEXT = 3
"""Unchanged lines around a change, as diff and git have them."""


def file_names(path: str, before: bytes | None, after: bytes | None, prefix: str = "") -> tuple[str, str]:
    """What stands behind ``---`` and ``+++``: git's ``a/`` and ``b/``, and ``/dev/null`` where there is no file."""
    # GNU patch ends a name at a blank unless a tab follows it.
    tab = "\t" if " " in path else ""
    old, new = quoted(f"a/{prefix}{path}"), quoted(f"b/{prefix}{path}")
    return ("/dev/null" if before is None else old + tab), ("/dev/null" if after is None else new + tab)


def quoted(name: str) -> str:
    """A file's name as git writes it into a diff: quoted, with escapes, where it holds what would break the line."""
    if name.isprintable() and '"' not in name and "\\" not in name:
        return name
    plain = {10: "\\n", 9: "\\t", 34: '\\"', 92: "\\\\"}
    data = name.encode("utf-8", "surrogateescape")
    return '"' + "".join(plain.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in data) + '"'


def _lines(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def hunks(before: bytes, after: bytes) -> Iterator[bytes]:
    """The lines of the hunks that lead from ``before`` to ``after``, those joined whose contexts would meet.

    Lines end at ``\\n`` alone, so carriage returns are part of them, and bytes of any encoding stay as they are.
    """
    old, new = _lines(before), _lines(after)
    changes = list(line_hunks(old, new))
    groups: list[list[tuple[int, int, int, int]]] = []
    for change in changes:
        if groups and change[0] - groups[-1][-1][1] <= 2 * CONTEXT:
            groups[-1].append(change)
        else:
            groups.append([change])
    for group in groups:
        start, stop = max(group[0][0] - CONTEXT, 0), min(group[-1][1] + CONTEXT, len(old))
        new_start = group[0][2] - (group[0][0] - start)
        new_stop = group[-1][3] + (stop - group[-1][1])
        yield f"@@ -{_range(start, stop)} +{_range(new_start, new_stop)} @@\n".encode("ascii")
        at = start
        for low, high, new_low, new_high in group:
            yield from (_line(b" ", line) for line in old[at:low])
            yield from (_line(b"-", line) for line in old[low:high])
            yield from (_line(b"+", line) for line in new[new_low:new_high])
            at = high
        yield from (_line(b" ", line) for line in old[at:stop])


def _range(start: int, stop: int) -> str:
    """A range as POSIX has it (diff, "Diff -u Output Format"): an empty one names the line before it."""
    count = stop - start
    return f"{start + 1 if count else start}" + ("" if count == 1 else f",{count}")


def _line(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + b"\n\\ No newline at end of file\n"
