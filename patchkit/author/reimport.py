"""The imports of a module that moves to another package: rewritten so that they mean what they meant, and back.

Pure. Only the names of modules in import statements change (and, behind a plain ``import a.b.c``, the dotted names by
which its modules are used); every other byte stays.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator, Sequence

from patchkit.edit.source import Source, Splice
from patchkit.tuples import NamedTuple

_GAP = r"(?:[ \t\f]|\\\n)*"


class Tree(NamedTuple):
    """A package or module, by its dotted name ``root``, and what it is called as a ``copy``.

    ``left`` are modules of the tree that are not in the copy (compiled ones).
    """

    root: str
    copy: str
    left: frozenset[str] = frozenset()

    def holds(self, name: str) -> bool:
        """Whether a module of that name is in the copy, or a name of one of its modules."""
        return _below(name, self.root) and not any(_below(name, one) for one in self.left)

    def moved(self, name: str) -> str:
        """What a name of the tree is called in the copy."""
        return self.copy + name[len(self.root) :]

    def back(self, name: str) -> str:
        """What a name of the copy is called in the tree."""
        return self.root + name[len(self.copy) :]


class Rewritten(NamedTuple):
    """``splices`` of a file; ``pairs`` are its import statements before and after, also those that stay.

    ``relative`` are modules that a relative import named, by their full names, with that; ``notes`` are for a person.
    """

    splices: list[Splice]
    pairs: list[tuple[str, str]]
    relative: dict[str, str]
    notes: list[str]


def rewrite(source: Source, parsed: ast.Module, module: str, package: bool, tree: Tree) -> Rewritten:
    """What the imports of ``module`` become in the copy.

    Args:
        source: The file.
        parsed: Its tree.
        module: The module's own name.
        package: Whether it is a package (``__init__.py``).
        tree: What is copied.
    """
    done = Rewritten([], [], {}, [])
    parent = module if package else module.rpartition(".")[0]
    chains = False
    for node in _imports(parsed):
        start, end = _span(source, node)
        old = source.text[start:end]
        if isinstance(node, ast.ImportFrom):
            target = _target(node, parent)
            if target is None:
                continue  # an error at run time, and as good as any in the copy
            new = _from(node, old, target, tree)
            if node.level and not tree.holds(target) and node.module != target:
                done.relative[target] = "." * node.level + (node.module or "")
        else:
            new, chained = _plain(node, old, tree)
            chains = chains or chained
        done.pairs.append((old, new))
        if new != old:
            done.splices.append(Splice(start, end, new))
    if chains:
        done.splices.extend(_chains(source, parsed, tree.root, tree.copy, done.notes, tree.left))
    elif "." not in tree.root:
        done.notes.extend(_through_copy(parsed, tree))
    done.notes.extend(in_strings(parsed, tree.root))
    done.splices.sort()
    return done


def in_strings(parsed: ast.Module, top: str) -> Iterator[str]:
    """Dotted names of modules below ``top`` that are whole strings, in words: nobody can say what they are for."""
    for part in ast.walk(parsed):
        text = part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""
        if "." in text and _below(text, top) and all(name.isidentifier() for name in text.split(".")):
            yield f"line {part.lineno} names {text} in a string, which stays"  # type: ignore[attr-defined]


def _through_copy(parsed: ast.Module, tree: Tree) -> Iterator[str]:
    """Where a compiled module is used as an attribute of the package, which the copy has not."""
    for node in ast.walk(parsed):
        name = _dotted(node) if isinstance(node, ast.Attribute) else None
        if name in tree.left:
            yield f"line {node.lineno} uses {name}, which is compiled and not in the copy: import it by `from`"  # type: ignore[attr-defined]


def undo(
    source: Source, parsed: ast.Module, made: Rewritten, tree: Tree, notes: list[str] | None = None
) -> list[Splice]:
    """What leads from a file of the copy, as it was edited since, to one of the tree.

    A statement that is as it was made becomes what it was made of; others that name modules of the copy, by their
    names.

    Args:
        source: The file of the copy.
        parsed: Its tree.
        made: What was done when it was copied.
        tree: What was copied.
        notes: Filled with what names the copy and stays.
    """
    waiting: dict[str, deque[str]] = {}
    for old, new in made.pairs:
        waiting.setdefault(new, deque()).append(old)
    splices = []
    chains = False
    nodes = [(node, *_span(source, node)) for node in _imports(parsed)]
    ends = {end for _, _, end in nodes}
    done = 0
    for node, start, end in nodes:
        chains = chains or isinstance(node, ast.Import)
        if start < done:
            continue  # of a statement that was split
        fitting = [new for new, olds in waiting.items() if olds and source.text.startswith(new, start)]
        text = max((new for new in fitting if start + len(new) in ends), key=len, default=source.text[start:end])
        done = start + len(text)
        if waiting.get(text):
            new = waiting[text].popleft()
        elif isinstance(node, ast.ImportFrom):
            new = _from_back(node, text, made, tree)
        else:
            names = [
                (tree.back(alias.name) if _below(alias.name, tree.copy) else alias.name, alias.asname)
                for alias in node.names
            ]
            changed = any(_below(alias.name, tree.copy) for alias in node.names)
            new = _import(names) if changed else text
        if new != text:
            splices.append(Splice(start, done, new))
    if chains:
        splices += _chains(source, parsed, tree.copy, tree.root, notes if notes is not None else [])
    if notes is not None:
        notes.extend(in_strings(parsed, tree.copy))
    return sorted(splices)


def _imports(parsed: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    found = [node for node in ast.walk(parsed) if isinstance(node, ast.Import | ast.ImportFrom)]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _span(source: Source, node: ast.expr | ast.stmt) -> tuple[int, int]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return source.position(node.lineno, node.col_offset), source.position(node.end_lineno, node.end_col_offset)


def _below(name: str, top: str) -> bool:
    return name == top or name.startswith(f"{top}.")


def _target(node: ast.ImportFrom, parent: str) -> str | None:
    """The module that a ``from`` names, in full; None where its dots lead out of everything."""
    if not node.level:
        return node.module
    parts = parent.split(".")
    if node.level > len(parts):
        return None
    above = ".".join(parts[: len(parts) - node.level + 1])
    return f"{above}.{node.module}" if node.module else above


def _from(node: ast.ImportFrom, text: str, target: str, tree: Tree) -> str:
    """The text of a ``from`` statement in the copy."""
    inside = tree.holds(target)
    strays = [alias for alias in node.names if tree.holds(f"{target}.{alias.name}") != inside]
    if inside and not any(f"{target}.{alias.name}" in tree.left for alias in strays):
        strays = []
    if not strays:
        if inside:
            return text if node.level else _headed(text, node, tree.moved(target))
        return _headed(text, node, target) if node.level else text
    return "; ".join(_split(node, target, inside, [alias.name for alias in strays], tree))


def _split(node: ast.ImportFrom, target: str, inside: bool, strays: Sequence[str], tree: Tree) -> Iterator[str]:
    """One statement as several, where its names come to lie in several places."""
    here = tree.moved(target) if inside else target
    names = [_named(alias.name, alias.asname) for alias in node.names if alias.name not in strays]
    if names:
        yield f"from {here} import {', '.join(names)}"
    for alias in node.names:
        if alias.name in strays:
            name = f"{target}.{alias.name}"
            if inside:
                yield f"from {target} import {_named(alias.name, alias.asname)}"
            else:
                yield _import([(tree.moved(name), alias.asname or alias.name)])


def _headed(text: str, node: ast.ImportFrom, target: str) -> str:
    """A ``from`` statement with another module's name; nothing else of it changes."""
    dots = "".join(rf"\.{_GAP}" for _ in range(node.level))
    name = rf"{_GAP}\.{_GAP}".join(map(re.escape, (node.module or "").split("."))) if node.module else ""
    found = re.match(rf"from(?P<gap>{_GAP}){dots}{name}(?P<end>{_GAP})import\b", text)
    if found is None:  # written with other letters than it means: Python reads NFKC
        names = ", ".join(_named(alias.name, alias.asname) for alias in node.names)
        return f"from {target} import {names}"
    end = found["end"] if found["end"].strip(" \t\f") or len(found["end"]) > 0 else " "
    return f"from{found['gap'] or ' '}{target}{end}import{text[found.end() :]}"


def _from_back(node: ast.ImportFrom, text: str, made: Rewritten, tree: Tree) -> str:
    if node.level or node.module is None:
        return text
    if _below(node.module, tree.copy):
        return _headed(text, node, tree.back(node.module))
    relative = made.relative.get(node.module)
    return text if relative is None else _headed(text, node, relative)


def _plain(node: ast.Import, text: str, tree: Tree) -> tuple[str, bool]:
    """The text of an ``import`` in the copy, and whether dotted names behind it are to change."""
    if not any(tree.holds(alias.name) for alias in node.names):
        return text, False
    names: list[tuple[str, str | None]] = []
    chained = False
    top = tree.root.partition(".")[0]
    for alias in node.names:
        if not tree.holds(alias.name):
            names.append((alias.name, alias.asname))
        elif alias.asname is not None:
            names.append((tree.moved(alias.name), alias.asname))
        elif top == tree.root:  # the name that it binds is the tree's own
            more = [(tree.moved(alias.name), None)] if alias.name != tree.root else []
            names += [*more, (tree.copy, top)]
        else:
            names += [(alias.name, None), (tree.moved(alias.name), None)]
            chained = True
    return _import(names), chained


def _import(names: Sequence[tuple[str, str | None]]) -> str:
    return f"import {', '.join(_named(*name) for name in names)}"


def _named(name: str, asname: str | None) -> str:
    return name if asname is None else f"{name} as {asname}"


def _chains(
    source: Source, parsed: ast.Module, old: str, new: str, notes: list[str], left: frozenset[str] = frozenset()
) -> Iterator[Splice]:
    """Dotted names in expressions that begin with ``old``; within f-strings they are left to a person.

    Those of the modules ``left`` stay.
    """
    hidden = {
        id(part) for node in ast.walk(parsed) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)
    }  # their positions are wrong before Python 3.12
    stays = {
        id(part)
        for node in ast.walk(parsed)
        if left and isinstance(node, ast.Attribute) and _dotted(node) in left
        for part in ast.walk(node)
    }
    for node in ast.walk(parsed):
        if isinstance(node, ast.Attribute | ast.Name) and _dotted(node) == old and id(node) not in stays:
            if id(node) in hidden:
                notes.append(f"line {node.lineno} uses {old} within an f-string, which stays")
            else:
                yield Splice(*_span(source, node), new)


def _dotted(node: ast.expr) -> str | None:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None
