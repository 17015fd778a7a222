"""From the bytes of a patch file to a :class:`~patchkit.model.patch.Patch`, or to every reason why not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from patchkit.model.checks import quote
from patchkit.model.document import Document, Fields, read_document
from patchkit.model.heads import check_stem, refuse_later_schema
from patchkit.model.keys import ACTIONS, ANCHORS, CHANGES, SCHEMA, TABLES, home_of
from patchkit.model.patch import Action, Add, Condition, ConditionKind, Edit, Example, Patch, Remove, Target
from patchkit.runtime.ledger import sha256_hex

if TYPE_CHECKING:
    from patchkit.model.lines import KeyPath


def load_patch(path: str) -> Patch:
    """Read and check one patch file.

    Raises:
        PatchFileError: It cannot be read, or it is wrong; ``details["problems"]`` has every problem.
    """
    return parse_patch(read_document(path), path)


def parse_patch(data: bytes, path: str | None) -> Patch:
    """Check the bytes of a patch file. ``path`` names it in messages; its stem must be the patch's name.

    Raises:
        PatchFileError: The file is wrong; ``details["problems"]`` has every problem.
    """
    document = Document(data, path, home=lambda name, table: home_of(name, beside=table))
    refuse_later_schema(document, SCHEMA)
    top = document.read(document.root, (), TABLES[""])
    values = top.values
    check_stem(document, values.get("name"))
    target = _target(document, values)
    edits = _edits(document, values.get("edit", ()))
    adds = _adds(document, values.get("add", ()))
    removes = _removes(document, values.get("remove", ()))
    _check_removes(document, removes, edits, adds)
    _check_repeats(document, edits, adds)
    preconditions, postconditions, upstreamed = (
        _conditions(document, kind, values.get(kind, ())) for kind in ("precondition", "postcondition", "upstreamed")
    )
    if not any(name in top.seen and values.get(name, True) for name in CHANGES):
        document.problem((), "the patch does nothing: it has no [[edit]], no [[add]] and no [[remove]]")
    document.finish()
    assert target is not None  # else there was a problem
    return Patch(
        name=values["name"],
        summary=values["summary"],
        target=target,
        edits=edits,
        preconditions=preconditions,
        postconditions=postconditions,
        adds=adds,
        removes=removes,
        upstreamed=upstreamed,
        description=values.get("description", ""),
        links=values.get("links", ()),
        tags=values.get("tags", ()),
        path=path,
        data=data,
        digest=sha256_hex(data),
    )


def _target(document: Document, top: dict[str, Any]) -> Target | None:
    if "target" not in top:
        return None
    at: KeyPath = ("target",)
    values = document.read(top["target"], at, TABLES["target"]).values
    for key in ("conflicts", "after"):
        others = values.get(key, ())
        if top.get("name") in others:
            document.key_problem((*at, key, others.index(top["name"]) + 1), "is this patch itself")
    return Target(
        requirement=values.get("requirement", ""),
        requires=values.get("requires", ()),
        otherwise=values.get("otherwise"),
        optional=values.get("optional", False),
        conflicts=values.get("conflicts", ()),
        after=values.get("after", ()),
    )


def _edits(document: Document, tables: Iterable[dict[str, object]]) -> tuple[Edit, ...]:
    """The edits that are right; the others have left problems in the document."""
    edits = (_edit(document, index, raw) for index, raw in enumerate(tables, 1))
    return tuple(edit for edit in edits if edit is not None)


def _edit(document: Document, index: int, raw: dict[str, object]) -> Edit | None:
    at: KeyPath = ("edit", index)
    before = len(document.problems)
    fields = document.read(raw, at, TABLES["edit"])
    values = fields.values
    action = _action(document, at, fields)
    if action is not None and ACTIONS[action].anchored:
        _check_anchor(document, at, fields, action)
        _check_change(document, at, values, action)
    _check_nth(document, at, fields)
    examples = tuple(
        _example(document, (*at, "example", number), number, table)
        for number, table in enumerate(values.get("example", ()), 1)
    )
    if action is None or len(document.problems) > before:
        return None
    return Edit(
        index=index,
        files=values["file"],
        action=action,
        find=values.get("find"),
        match=values.get("match"),
        text="" if action in ("delete", "add_import") else values[action],
        imports=values[action] if action == "add_import" else (),
        scope=values.get("scope"),
        inside=values.get("inside"),
        after=values.get("after"),
        before=values.get("before"),
        versions=values.get("versions"),
        count=values.get("count", 1),
        nth=values.get("nth"),
        examples=examples,
    )


def _action(document: Document, at: KeyPath, fields: Fields) -> Action | None:
    """The one action of an edit, after a look at the keys that it needs and refuses."""
    found = [name for name in ACTIONS if name in fields.seen]
    if not found:
        names = ", ".join(ACTIONS)
        document.table_problem(at, at, f"no action: an edit has exactly one of {names}")
        return None
    if len(found) > 1:
        names = " and ".join(found)
        document.table_problem(at, (*at, found[1]), f"{len(found)} actions, {names}: an edit has exactly one")
        return None
    rule = ACTIONS[found[0]]
    for key in rule.needs:
        if key not in fields.seen:
            document.table_problem(at, at, f"{found[0]} needs {key}")
    for key in rule.refuses:
        if key in fields.seen:
            document.key_problem((*at, key), f"has no meaning with {found[0]}")
    return cast(Action, found[0])


def _check_anchor(document: Document, at: KeyPath, fields: Fields, who: str) -> None:
    """Exactly one of ``find`` and ``match``; what stands around it is of the same kind."""
    found = [name for name in ANCHORS if name in fields.seen]
    if not found:
        document.table_problem(at, at, f"no anchor: {who} needs find or match")
    elif len(found) == 2:
        document.table_problem(at, (*at, "match"), f"two anchors, find and match: {who} needs exactly one")
    elif found == ["match"]:
        for key in ("after", "before"):
            if key in fields.values and not fields.values[key].strip():
                document.key_problem((*at, key), "must not be blank")


def _check_change(document: Document, at: KeyPath, values: dict[str, Any], action: str) -> None:
    if action == "replace" and "find" in values and values.get("replace") == values["find"]:
        document.key_problem((*at, "replace"), "is identical to find: the edit changes nothing")


def _check_nth(document: Document, at: KeyPath, fields: Fields) -> None:
    nth = fields.values.get("nth")
    if nth is None or ("count" in fields.seen and "count" not in fields.values):
        return
    count = fields.values.get("count", 1)
    if nth > count:
        document.key_problem((*at, "nth"), f"must be at most count, which is {count}, found {nth}")


def _example(document: Document, at: KeyPath, index: int, raw: dict[str, object]) -> Example:
    values = document.read(raw, at, TABLES["edit.example"]).values
    return Example(index=index, before=values.get("before", ""), after=values.get("after", ""))


def _conditions(document: Document, kind: ConditionKind, tables: Iterable[dict[str, object]]) -> tuple[Condition, ...]:
    return tuple(_condition(document, kind, index, raw) for index, raw in enumerate(tables, 1))


def _condition(document: Document, kind: ConditionKind, index: int, raw: dict[str, object]) -> Condition:
    at: KeyPath = (kind, index)
    fields = document.read(raw, at, TABLES[kind])
    values = fields.values
    anchored = not fields.seen.isdisjoint(ANCHORS)
    if kind != "upstreamed" or anchored or "file" in fields.seen:
        _check_anchor(document, at, fields, kind)
        if kind == "upstreamed" and "file" not in fields.seen:
            document.table_problem(at, at, "the anchor needs a file")
    else:
        if "versions" not in fields.seen:
            document.table_problem(at, at, "needs versions, or file with find or match")
        for key in ("scope", "inside", "count"):
            if key in fields.seen:
                document.key_problem((*at, key), "has no meaning without find or match")
    at_least, at_most = _bounds(values.get("count", 1))
    return Condition(
        kind=kind,
        index=index,
        file=values.get("file"),
        find=values.get("find"),
        match=values.get("match"),
        scope=values.get("scope"),
        inside=values.get("inside"),
        versions=values.get("versions"),
        at_least=at_least,
        at_most=at_most,
    )


def _bounds(count: int | str) -> tuple[int, int | None]:
    """``"2+"`` is at least 2; a number, exactly that many."""
    if isinstance(count, int):
        return count, count
    return int(count.removesuffix("+")), None


def _adds(document: Document, tables: Iterable[dict[str, object]]) -> tuple[Add, ...]:
    adds = []
    for index, raw in enumerate(tables, 1):
        values = document.read(raw, ("add", index), TABLES["add"]).values
        if "file" in values:
            adds.append(
                Add(
                    index=index,
                    file=values["file"],
                    content=values.get("content", ""),
                    versions=values.get("versions"),
                )
            )
    return tuple(adds)


def _removes(document: Document, tables: Iterable[dict[str, object]]) -> tuple[Remove, ...]:
    removes = []
    for index, raw in enumerate(tables, 1):
        values = document.read(raw, ("remove", index), TABLES["remove"]).values
        if "file" in values:
            removes.append(Remove(index=index, files=values["file"], versions=values.get("versions")))
    return tuple(removes)


def _check_removes(document: Document, removes: Iterable[Remove], edits: Iterable[Edit], adds: Iterable[Add]) -> None:
    """Refuse a file that is taken away twice, or is edited or added as well, for the same ``versions``."""
    if not removes:
        return
    others: dict[tuple[str, frozenset[str]], str] = {}
    for edit in edits:
        for file in edit.files:
            others.setdefault((file, _version_set(edit.versions)), f"edited by edit {edit.index}")
    for add in adds:
        others.setdefault((add.file, _version_set(add.versions)), f"added by add {add.index}")
    for remove in removes:
        for file in remove.files:
            place = (file, _version_set(remove.versions))
            if place in others:
                document.key_problem(("remove", remove.index, "file"), f"{quote(file)} is {others[place]}")
            others.setdefault(place, f"taken away by remove {remove.index} already")


def _check_repeats(document: Document, edits: Iterable[Edit], adds: Iterable[Add]) -> None:
    """Refuse what stands twice: an edit with the same anchor in the same place, a file added twice or also edited.

    Different ``versions`` make a difference, and so do the two sides of an anchor: ``insert_before`` and
    ``insert_after`` do not touch the same characters. Two ``add_import`` never collide.
    """
    first: dict[tuple[object, ...], Edit] = {}
    edited: dict[tuple[str, frozenset[str]], int] = {}
    for edit in edits:
        side = edit.action if edit.action in ("insert_before", "insert_after") else None
        anchor = (edit.anchor_key, edit.find or edit.match, edit.scope, edit.inside, edit.after, edit.before, edit.nth)
        reported: set[int] = set()
        for file in edit.files:
            versions = _version_set(edit.versions)
            edited.setdefault((file, versions), edit.index)
            if edit.action == "add_import":
                continue
            sides = ("insert_before", "insert_after", None) if side is None else (side, None)
            others = (first.get((file, versions, anchor, other)) for other in sides)
            same = next((other for other in others if other is not None), None)
            first.setdefault((file, versions, anchor, side), edit)
            if same is not None and same.index not in reported:
                reported.add(same.index)
                at: KeyPath = ("edit", edit.index)
                document.key_problem((*at, edit.anchor_key), f"the same place of {file} is edited by edit {same.index}")
    added: dict[tuple[str, frozenset[str]], int] = {}
    alike: dict[tuple[str, frozenset[str]], int] = {}
    for add in adds:
        place = (add.file, _version_set(add.versions))
        folded = (_folded(add.file), place[1])
        if place in added:
            at = ("add", add.index, "file")
            document.key_problem(at, f"{quote(add.file)} is added by add {added[place]} already")
        elif place in edited:
            at = ("add", add.index, "file")
            document.key_problem(at, f"{quote(add.file)} is edited by edit {edited[place]}: a file is new or edited")
        elif folded in alike:
            what = f"{quote(add.file)} differs from the file of add {alike[folded]} in case or in Unicode form alone"
            document.key_problem(("add", add.index, "file"), f"{what}: on many disks that is one file")
        added.setdefault(place, add.index)
        alike.setdefault(folded, add.index)


def _folded(file: str) -> str:
    """What a disk of macOS or Windows goes by."""
    if file.isascii():
        return file.lower()
    import unicodedata

    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", file).casefold())


def _version_set(versions: str | None) -> frozenset[str]:
    """Version specifiers in a form that compares: their order and blanks do not matter."""
    return frozenset("".join(part.split()) for part in versions.split(",")) if versions else frozenset()
