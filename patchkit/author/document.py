"""A patch file as text: what an author's command writes, in the form a person would have written it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patchkit.author.derive import TextEdit
from patchkit.edit.uniqueness import toml_assignment
from patchkit.errors import PlanError
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.author.renew import Carried


class Draft(NamedTuple):
    """A patch to be written: ``edits`` by file, ``adds`` as (path, content), ``removes`` by path.

    ``after`` is as in ``[target]``.

    ``head`` stands before all else: comments, each with its newline. ``carried`` is what an earlier file of it said.
    """

    name: str
    summary: str
    requirement: str
    edits: Mapping[str, Sequence[TextEdit]]
    adds: Sequence[tuple[str, str]] = ()
    removes: Sequence[str] = ()
    after: Sequence[str] = ()
    links: Sequence[str] = ()
    description: str = ""
    head: str = ""
    carried: Carried | None = None


def render(draft: Draft) -> bytes:
    """The TOML of ``draft``. One edit that is the same in several files is written once, with all their names.

    Raises:
        PlanError: ``not-text``: the change holds bytes that do not decode, which TOML cannot write.
    """
    carried = draft.carried
    tables = {} if carried is None else carried.tables
    out = [
        "schema = 1",
        *_assigned("name", draft.name),
        *_assigned("summary", draft.summary),
        *(_assigned("description", draft.description) if draft.description else ()),
        *([f"links = {_array(draft.links)}"] if draft.links else ()),
        *_values({} if carried is None else carried.head),
        "",
        "[target]",
        *_assigned("requirement", draft.requirement),
        *_values({} if carried is None else carried.target),
        *([f"after = {_array(draft.after)}"] if draft.after else ()),
    ]
    out += _tables("precondition", tables.get("precondition", ()))
    for edit, files in _grouped(draft.edits):
        out += ["", "[[edit]]", _file(files)]
        if edit.scope is not None:
            out += _assigned("scope", edit.scope)
        out += _assigned(edit.kind, edit.find, files[0])
        out += ["delete = true"] if edit.action == "delete" else _assigned(edit.action, edit.text, files[0])
        examples = [one for file in files for one in carried.examples.get((file, edit), ())] if carried else []
        out += _tables("edit.example", [one for at, one in enumerate(examples) if one not in examples[:at]])
        out += [] if examples else _example(edit, files[0])
    for path, content in draft.adds:
        out += ["", "[[add]]", *_assigned("file", path), *_assigned("content", content, path)]
    if draft.removes:
        out += ["", "[[remove]]", _file(draft.removes)]
    for name in ("postcondition", "upstreamed"):
        out += _tables(name, tables.get(name, ()))
    return (draft.head + "\n".join(out) + "\n").encode("utf-8")


def _file(paths: Sequence[str]) -> str:
    return f"file = {_array(paths)}" if len(paths) > 1 else _assigned("file", paths[0])[0]


def _example(edit: TextEdit, path: str) -> list[str]:
    """What an edit does that adds or takes the line break at the end of a file, which reads like a slip otherwise."""
    ends = edit.find.endswith("\n"), edit.text.endswith("\n")
    if edit.kind != "find" or edit.action not in ("replace", "insert_after") or not edit.text or ends[0] == ends[1]:
        return []
    after = edit.find + edit.text if edit.action == "insert_after" else edit.text
    return ["[[edit.example]]", *_assigned("before", edit.find, path), *_assigned("after", after, path)]


def _tables(name: str, tables: Iterable[Mapping[str, Any]]) -> list[str]:
    """Tables of an array, as they were read."""
    return [line for table in tables for line in ("", f"[[{name}]]", *_values(table))]


def _values(table: Mapping[str, Any]) -> list[str]:
    """The keys of a table, as they were read: a patch file holds strings, whole numbers, true and lists of strings."""
    out: list[str] = []
    for key, value in table.items():
        if isinstance(value, str):
            out += _assigned(key, value)
        elif isinstance(value, list):
            out.append(f"{key} = {_array(value)}")
        else:
            out.append(f"{key} = {str(value).lower()}")
    return out


def _grouped(edits: Mapping[str, Sequence[TextEdit]]) -> Iterable[tuple[TextEdit, list[str]]]:
    """Each distinct edit with its files, in the order of the first of them.

    An edit that stands twice in one file's list cannot be: their anchors would not be unique.
    """
    found: dict[TextEdit, list[str]] = {}
    for path, own in edits.items():
        for edit in own:
            found.setdefault(edit, []).append(path)
    return found.items()


def _array(texts: Sequence[str]) -> str:
    parts = [_assigned("x", text)[0].removeprefix("x = ") for text in texts]
    line = f"[{', '.join(parts)}]"
    return line if len(line) <= 100 else "[\n" + "".join(f"  {part},\n" for part in parts) + "]"


def _assigned(key: str, text: str, path: str | None = None) -> list[str]:
    lines = toml_assignment(key, text)
    if lines is None:
        raise PlanError(
            f"{path or key}: the change holds bytes that are not text in the file's encoding, and a patch file cannot",
            code="not-text",
            hint="keep such bytes out of the lines that you change",
            details={"path": path, "key": key},
        )
    return lines
