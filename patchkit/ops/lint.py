"""Static checks of patch files, without a site: they load, their patterns parse, their examples hold, and they last.
Of recipes: that they load.

What only released wheels show, :mod:`patchkit.author.linting` finds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from patchkit.edit.imports import check_import
from patchkit.edit.locate import place
from patchkit.edit.pattern import PatternError, compile_pattern
from patchkit.edit.plan import plan_patch
from patchkit.errors import PatchFileError, PlanError
from patchkit.model.checks import quote
from patchkit.model.document import MAX_BYTES, decode, parse
from patchkit.model.lines import key_lines
from patchkit.model.load import load_patch
from patchkit.model.load_recipe import load_recipe
from patchkit.model.patch import Condition, Edit, Example, Patch
from patchkit.ops.habits import at, fragile, of_file, repeated, telling
from patchkit.ops.memory import Memory, Running
from patchkit.ops.rules import Finding
from patchkit.runtime.ledger import read_regular

PLACEHOLDER = "One line: what it does"
"""The summary that `patchkit new` writes, to be replaced."""

_PROSE = (".po", ".pot", ".md", ".rst", ".txt")
"""Endings of files that nothing runs, in which joiners and direction marks belong to the languages written there."""


def lint_file(path: str) -> list[Finding]:
    """Check one patch file.

    Args:
        path: Its path.

    Returns:
        What is wrong, by line; empty when nothing is.
    """
    try:
        patch = load_patch(path)
    except PatchFileError as error:
        return _refused(path, error)
    return lint_patch(patch)


def lint_recipe(path: str) -> list[Finding]:
    """Check one recipe: that it loads, and says why it is there."""
    try:
        recipe = load_recipe(path)
    except PatchFileError as error:
        return _refused(path, error)
    if recipe.description.strip():
        return []
    line = key_lines(decode(recipe.data, path)).get(("name",))
    return [Finding(path, line, "no-description", "description", "no description: say what it is to show")]


def is_recipe(path: str) -> bool:
    """Whether a file is meant as a recipe: it has an engine, and nothing that only a patch has."""
    try:
        root = parse(decode(read_regular(path, MAX_BYTES), path), path)
    except (OSError, ValueError, PatchFileError):
        return False
    return "engine" in root and "target" not in root and "edit" not in root


def _refused(path: str, error: PatchFileError) -> list[Finding]:
    problems = error.details.get("problems")
    if isinstance(problems, list) and problems:
        return [_loaded(path, problem) for problem in problems]
    return [Finding(path, error.details.get("line"), "load", None, error.message)]


def lint_patch(patch: Patch) -> list[Finding]:
    """What is wrong with, or could be better in, a patch that loads, by line."""
    findings = [*_patterns(patch), *_examples(patch), *_texts(patch), *telling(patch), *fragile(patch)]
    return in_order([*findings, *repeated(patch)])


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by their line."""
    return sorted(findings, key=lambda f: (f.line or 0, f.rule, f.message))


def _loaded(path: str, problem: Mapping[str, Any]) -> Finding:
    """A loader's problem as a finding: the key in words, and a message that does not repeat it."""
    message = str(problem["message"])
    key = problem["key"]
    if key is not None:
        key = key.replace("[", " ").replace("]", "").replace(".", ": ")
        for head in (key, key.rpartition(" ")[0], key.rpartition(": ")[0]):
            if head and message.startswith(f"{head}: "):
                # An item of a list is told as such by the message.
                key = head if key == f"{head} {key.rpartition(' ')[2]}" else key
                message = message.removeprefix(f"{head}: ")
                break
    if problem["suggestion"] is not None:
        first, newline, rest = message.partition("\n")
        message = f"{first} (did you mean {quote(problem['suggestion'])}?){newline}{rest}"
    return Finding(path, problem["line"], "load", key, message)


def _patterns(patch: Patch) -> Iterator[Finding]:
    parts: Sequence[Edit | Condition] = [
        *patch.edits,
        *patch.preconditions,
        *patch.postconditions,
        *patch.upstreamed,
    ]
    for part in parts:
        table = "edit" if isinstance(part, Edit) else part.kind
        for key, problem in _problems(part):
            yield at(patch, table, part.index, key, "pattern", problem)


def _problems(part: Edit | Condition) -> Iterator[tuple[str, str]]:
    """The keys of an edit or condition that hold no valid pattern, header, template or import, and why."""
    if part.inside is not None:
        from patchkit.edit.outline import check_header

        try:
            check_header(part.inside, ast.parse)
        except ValueError as error:
            yield "inside", str(error)
    if isinstance(part, Edit):
        for statement in part.imports:
            try:
                check_import(statement, ast.parse)
            except PlanError as error:
                yield "add_import", error.message
    if part.match is None:
        return
    pattern = None
    neighbours = (("after", part.after), ("before", part.before)) if isinstance(part, Edit) else ()
    for key, text in (("match", part.match), *neighbours):
        if text is not None:
            try:
                compiled = compile_pattern(text, ast.parse)
                pattern = compiled if key == "match" else pattern
            except PatternError as error:
                yield key, str(error)
    if pattern is not None and isinstance(part, Edit):
        from patchkit.edit.rewrite import check_template

        try:
            check_template(pattern, part.action, part.text, ast.parse)
        except PlanError as error:
            yield part.action, error.message + (f": {error.hint}" if error.hint else "")


def _examples(patch: Patch) -> Iterator[Finding]:
    for edit in patch.edits:
        for example in edit.examples:
            try:
                result = run_example(patch, edit, example)
            except PatchFileError:
                continue  # wrong whatever the file holds: told already
            except PlanError as error:
                message = error.message.removeprefix(f"{place(patch, 'edit', edit.index, edit.anchor_key).text} ")
                if message != error.message:
                    message = f"`{edit.anchor_key}` {message}"
                yield _example_finding(patch, edit, example, f"the edit does not fit `before`: {message}")
                continue
            if result != example.after:
                yield _example_finding(patch, edit, example, _difference(result, example.after))


def run_example(patch: Patch, edit: Edit, example: Example) -> str:
    """What ``edit`` of ``patch`` makes of ``example.before``, planned as ``apply`` plans it.

    An example is a piece of code, so ``scope``, ``inside`` and ``versions`` do not count. It may be indented where the
    edit is a syntax edit; its final line break is as in ``example.after``.

    Raises:
        PlanError: ``before`` is not what the edit is for.
        PatchFileError: The edit is wrong whatever the file holds.
    """
    before = example.before
    if edit.match is not None:
        from patchkit.edit.indent import dedent

        before = dedent(before)
    elif edit.find is not None and edit.find.endswith("\n") and not before.endswith("\n"):
        before += "\n"
    alone = edit._replace(files=("<example>.py",), scope=None, inside=None, versions=None)
    one = Patch(patch.name, patch.summary, patch.target, edits=(alone,), path=patch.path, data=patch.data)
    (plan,) = plan_patch(one, Memory(before.encode("utf-8", "surrogateescape")), Running()).files
    assert plan.after is not None  # it has one edit
    result = plan.after.decode("utf-8", "surrogateescape")
    if example.after.endswith("\n"):
        return result if result.endswith("\n") else result + "\n"
    return result.removesuffix("\n")


def _difference(result: str, expected: str) -> str:
    import difflib

    lines = difflib.unified_diff(
        expected.split("\n"), result.split("\n"), "after, as written", "after, as the edit makes it", lineterm=""
    )
    return "the example does not hold:\n" + "\n".join(f"    {line}" for line in lines)


def _texts(patch: Patch) -> Iterator[Finding]:
    for add in patch.adds:
        if not add.file.endswith(_PROSE):
            yield from _unseen(patch, "add", add.index, "content", add.content)
    if patch.summary == PLACEHOLDER:
        yield of_file(patch, "placeholder", "summary", ("summary",), "still holds what `patchkit new` wrote")
    if not patch.description.strip():
        what = "no description: say why, and when not"
        yield of_file(patch, "no-description", "description", ("name",), what)
    for edit in patch.edits:
        for text in () if all(path.endswith(_PROSE) for path in edit.files) else (edit.text, *edit.imports):
            yield from _unseen(patch, "edit", edit.index, edit.action, text)
        if edit.find is not None and "\n" not in edit.find and edit.scope is None and len(edit.find.strip()) < 4:
            yield at(patch, "edit", edit.index, "find", "anchor-short", "a very short anchor without a scope")
        shown = bool(edit.examples)  # the author has said what comes out, as at the end of a file without a line break
        moves = edit.action in ("replace", "insert_before", "insert_after")
        if edit.find is not None and edit.text and moves and not shown:
            broken = edit.find.endswith("\n"), edit.text.endswith("\n")
            if broken == (True, False):
                what = f"`find` ends in a line break, `{edit.action}` does not: two lines will be joined"
                yield at(patch, "edit", edit.index, edit.action, "line-break", what)
            elif broken == (False, True) and edit.action != "insert_before":  # there the break is before the anchor
                what = f"`{edit.action}` ends in a line break, `find` does not: a blank or broken line will be left"
                yield at(patch, "edit", edit.index, edit.action, "line-break", what)


def _unseen(patch: Patch, table: str, index: int, key: str, text: str) -> Iterator[Finding]:
    """Code that would be written and looks otherwise than it runs (CVE-2021-42574), or that cannot be seen."""
    hidden = next((char for char in text if not char.isprintable() and _unseeable(char)), None)
    if hidden is not None:
        what = f"writes U+{ord(hidden):04X}, which cannot be seen and may show code otherwise than it runs"
        yield at(patch, table, index, key, "invisible", what)


def _unseeable(char: str) -> bool:
    """Whether a character that Python does not call printable cannot be seen.

    A line break or a blank can; so can what a later Unicode than this Python's has assigned, outside of what Unicode
    keeps for invisible characters (DerivedCoreProperties, Default_Ignorable_Code_Point).
    """
    import unicodedata

    if char in "\n\t\f\xa0\u3000":
        return False
    ignorable = char == "\u2065" or "\ufff0" <= char <= "\ufff8" or "\U000e0000" <= char <= "\U000e0fff"
    never = "\ufdd0" <= char <= "\ufdef" or ord(char) & 0xFFFE == 0xFFFE  # noncharacters
    return ignorable or never or unicodedata.category(char) != "Cn"


def _example_finding(patch: Patch, edit: Edit, example: Example, message: str) -> Finding:
    line = patch.line_of("edit", edit.index, "example", example.index)
    key = f"edit {edit.index}: example {example.index}"
    return Finding(patch.path or patch.name, line, "example", key, message)
