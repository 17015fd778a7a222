"""Static checks of patch files, without a site: they load, their patterns parse, their examples hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from patchkit.edit.imports import check_import
from patchkit.edit.locate import place
from patchkit.edit.pattern import PatternError, compile_pattern
from patchkit.errors import PatchFileError, PlanError
from patchkit.model.load import load_patch
from patchkit.model.patch import Condition, Edit, Example, Patch
from patchkit.tuples import NamedTuple


class Finding(NamedTuple):
    """Something wrong in a patch file: ``level`` is "error" or "warning"."""

    path: str
    line: int | None
    level: str
    key: str | None
    message: str


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
        problems = error.details.get("problems")
        if isinstance(problems, list) and problems:
            return [Finding(path, p.get("line"), "error", p.get("key"), p["message"]) for p in problems]
        return [Finding(path, error.details.get("line"), "error", None, error.message)]
    findings = [*_patterns(patch), *_examples(patch), *_habits(patch)]
    return sorted(findings, key=lambda f: (f.line or 0, f.message))


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
            yield _finding(patch, table, part.index, key, "error", problem)


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
                result = run_example(edit, example)
            except (PlanError, PatternError) as error:
                yield _example_finding(patch, edit, example, f"the edit does not fit `before`: {error}")
                continue
            if result != example.after:
                yield _example_finding(patch, edit, example, _difference(result, example.after))


def run_example(edit: Edit, example: Example) -> str:
    """What ``edit`` makes of ``example.before``; the final line break is as in ``example.after``.

    Raises:
        PlanError: The edit does not match ``count`` times.
        PatternError: The pattern is wrong.
    """
    if edit.match is not None:
        from patchkit.edit.rewrite import rewrite_text

        result = rewrite_text(example.before, edit.match, edit.action, edit.text, ast.parse)
    else:
        from patchkit.edit.source import Source
        from patchkit.edit.spans import Span
        from patchkit.edit.text import find_text, text_splices

        assert edit.find is not None
        before = example.before
        if edit.find.endswith("\n") and not before.endswith("\n"):
            before += "\n"
        source = Source(before.encode("utf-8", "surrogateescape"), path="<example>")
        spans = find_text(source, edit.find, [Span(0, len(source.text))])
        if len(spans) != edit.count:
            raise PlanError(f"`find` matches {len(spans)} times, expected {edit.count}")
        chosen = spans if edit.nth is None else [spans[edit.nth - 1]]
        splices = [s for span in chosen for s in text_splices(source, span, edit.action, edit.text, edit.index)]
        result = source.render(splices)[0].decode("utf-8", "surrogateescape")
    if example.after.endswith("\n"):
        return result if result.endswith("\n") else result + "\n"
    return result.removesuffix("\n")


def _difference(result: str, expected: str) -> str:
    import difflib

    lines = difflib.unified_diff(
        expected.split("\n"), result.split("\n"), "after, as written", "after, as the edit makes it", lineterm=""
    )
    return "the example does not hold:\n" + "\n".join(f"    {line}" for line in lines)


def _habits(patch: Patch) -> Iterator[Finding]:
    if not patch.description.strip():
        yield Finding(
            patch.path or patch.name,
            patch.line_of("name"),
            "warning",
            "description",
            "no description: say why, and when not",
        )
    for edit in patch.edits:
        if edit.find is not None and "\n" not in edit.find and edit.scope is None and len(edit.find.strip()) < 4:
            yield _finding(
                patch,
                "edit",
                edit.index,
                "find",
                "warning",
                "a very short anchor without a scope: a new release may match it",
            )


def _finding(patch: Patch, table: str, index: int, key: str, level: str, message: str) -> Finding:
    at = place(patch, table, index, key)
    return Finding(at.details["patch_file"], at.details["patch_line"], level, f"{table} {index}: {key}", message)


def _example_finding(patch: Patch, edit: Edit, example: Example, message: str) -> Finding:
    line = patch.line_of("edit", edit.index, "example", example.index)
    key = f"edit {edit.index}: example {example.index}"
    return Finding(patch.path or patch.name, line, "error", key, message)
