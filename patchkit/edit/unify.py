"""Unification of a pattern with a tree.

One goal after another is taken from a list, and where ``$$$`` leaves a choice, the way back is kept on a stack: the
search is complete (a metavariable bound in one place is respected everywhere) and never recurses.

What keeps it from trying every way of sharing a list out between several ``$$$``: a ``$$$`` ends only where the fixed
elements behind it can stand, which is worked out once for a list (:class:`_Run`), and where a search failed once, one
that begins there or further on, with the same left to do, is not made again. Where a name occurs twice that cannot
always help; then :data:`BUDGET` bounds it.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from patchkit.edit.captures import Binding
from patchkit.edit.pattern import (
    Display,
    Dotted,
    Index,
    Many,
    Node,
    One,
    Pattern,
    Sequence,
    Value,
    is_sure,
    metavariables,
)
from patchkit.edit.shape import Group, capture_kind, fingerprint, name_node, name_of, plain_name, same, view
from patchkit.errors import PlanError
from patchkit.tuples import NamedTuple

BUDGET = 100_000
"""How many choices of a ``$$$`` are taken back in one file before the pattern counts as too ambiguous."""
_ALLOWANCE = 50
"""As many more for each place that is tried."""
_LONG = 8
"""A list that is worth looking ahead in."""


class Solution(NamedTuple):
    """What the metavariables stand for, and where in its list of statements the match ends."""

    bindings: dict[str, Binding]
    stop: int


class _Tail(NamedTuple):
    """The part of a sequence from ``at`` on; ``closed``: it must take the whole list."""

    sequence: Sequence
    at: int
    closed: bool


class _Items(NamedTuple):
    """The part of a list of the tree from ``at`` on."""

    container: Any
    field: str
    nodes: list[Any]
    at: int


_Goals = tuple[Any, Any, Any] | None
_FAIL: _Goals = (None, None, None)


class _Choice(NamedTuple):
    """A ``$$$`` that may still take more: the least that it takes next, and the state to go back to.

    ``key`` is what a failure is remembered by.
    """

    tail: _Tail
    items: _Items
    stop: int
    goals: _Goals
    bound: int
    key: tuple[Any, ...]


class _Run:
    """Where the fixed items between two ``$$$`` can stand in a list, whatever has been bound before.

    ``names`` are the repeated metavariables in them of which one knows what they would be bound to at each position.
    """

    __slots__ = ("_by_names", "names", "positions", "prints")

    def __init__(self, positions: list[int], names: frozenset[str], prints: list[dict[str, int]]) -> None:
        self.positions = positions
        self.names = names
        self.prints = prints
        self._by_names: dict[tuple[str, ...], dict[tuple[int, ...], list[int]]] = {}

    def where(self, bound: dict[str, int]) -> list[int]:
        """The positions, in order, at which the names of ``bound`` get these fingerprints."""
        if not bound:
            return self.positions
        names = tuple(bound)
        index = self._by_names.get(names)
        if index is None:
            index = self._by_names[names] = {}
            for position, prints in zip(self.positions, self.prints, strict=True):
                index.setdefault(tuple(prints[name] for name in names), []).append(position)
        return index.get(tuple(bound.values()), [])


class Unifier:
    """Unifies one pattern with the nodes of one file, and remembers what it learns on the way."""

    def __init__(self, pattern: Pattern, path: str) -> None:
        """``path`` is the file's, for messages."""
        self.pattern = pattern
        self.path = path
        self.spent = 0
        counts: dict[str, int] = {}
        for name in metavariables(pattern.items):
            counts[name] = counts.get(name, 0) + 1
        self.repeated = frozenset(name for name, count in counts.items() if count > 1)
        # Keys are ids, so whatever they are the ids of is kept here as long as they are.
        self._failed: dict[tuple[Any, ...], tuple[int, _Goals]] = {}
        self._goals: dict[tuple[Any, ...], _Goals] = {}
        self._runs: dict[tuple[int, int, int], tuple[list[Any], _Run]] = {}
        self._views: dict[int, tuple[Any, dict[str, Any]]] = {}
        self._elements: dict[int, tuple[Any, list[Any]]] = {}
        self._prints: dict[int, tuple[Any, int]] = {}
        self._numbers: dict[Any, int] = {}
        self._later: dict[tuple[int, int], frozenset[str]] = {}

    def expression(self, node: Any) -> Solution | None:
        """Unify the pattern, an expression, with ``node``; None where it cannot be done.

        Raises:
            PlanError: ``ambiguous``: there are too many ways to try.
        """
        self.spent = max(0, self.spent - _ALLOWANCE)
        return self._solve(self.pattern.items.items[0], node)

    def statements(self, owner: Any, siblings: list[Any], position: int) -> Solution | None:
        """Unify the pattern with the shortest run of ``siblings`` that begins at ``position``.

        Raises:
            PlanError: ``ambiguous``: there are too many ways to try.
        """
        self.spent = max(0, self.spent - _ALLOWANCE)
        return self._solve(_Tail(self.pattern.items, 0, False), _Items(owner, "", siblings, position))

    def _solve(self, pattern: Any, target: Any) -> Solution | None:
        search = _Search(self)
        goals: _Goals = (pattern, target, None)
        while goals is not None:
            wanted, given, rest = goals
            goals = search.step(wanted, given, rest)
            if goals is _FAIL:
                goals = search.back()
                if goals is _FAIL:
                    return None
        return Solution(search.bindings, search.stop)

    def spend(self) -> None:
        """Count a choice that is taken back.

        Raises:
            PlanError: ``ambiguous``: it is one too many.
        """
        self.spent += 1
        if self.spent > BUDGET:
            first = self.pattern.text.strip().split("\n")[0]
            raise PlanError(
                f"{self.path}: too ambiguous: there are more than {BUDGET:,} ways to share the code here out between "
                f"the $$$ of the pattern that begins with `{first}`",
                code="ambiguous",
                hint="use fewer $$$, narrow it with `scope` or `inside`, or write out more of the code between them",
                details={"path": self.path},
            )

    # -- what is kept --------------------------------------------------------------------------------------------

    def fails(self, key: tuple[Any, ...], position: int) -> bool:
        """True where a search with that key is known to fail from ``position`` on."""
        known = self._failed.get(key)
        return known is not None and known[0] <= position

    def fail(self, key: tuple[Any, ...], position: int, rest: _Goals) -> None:
        """Remember that a search failed from ``position`` on."""
        known = self._failed.get(key)
        self._failed[key] = (position if known is None else min(known[0], position), rest)

    def goal(self, wanted: Any, given: Any, rest: _Goals) -> _Goals:
        """The goals with one before them; equal ones are one object."""
        key: tuple[Any, ...]
        if isinstance(wanted, _Tail):
            key = (id(wanted.sequence), wanted.at, id(given.nodes), given.at, id(rest))
        else:
            key = (id(wanted), id(given), id(rest))
        return self._goals.setdefault(key, (wanted, given, rest))

    def fields(self, node: Any) -> dict[str, Any]:
        """The fields of a node as patterns see them; merged lists are one object every time."""
        known = self._views.get(id(node))
        if known is None:
            known = self._views[id(node)] = (node, dict(view(node)[1]))
        return known[1]

    def elements(self, index: Any) -> list[Any]:
        """What stands in a subscript, as a list; ``a[1,]`` has one element, ``1,``, for ``a[1]`` is another thing."""
        if name_of(index) == "Tuple" and (len(index.elts) > 1 or any(name_of(e) == "Starred" for e in index.elts)):
            return index.elts  # type: ignore[no-any-return]
        return self._elements.setdefault(id(index), (index, [index]))[1]

    def number(self, nodes: tuple[Any, ...]) -> int:
        """A number that two captures have in common if, and only if, they are the same code."""
        prints = []
        for node in nodes:
            known = self._prints.get(id(node))
            if known is None:
                number = self._numbers.setdefault(fingerprint(node), len(self._numbers))
                known = self._prints[id(node)] = (node, number)
            prints.append(known[1])
        return prints[0] if len(prints) == 1 else self._numbers.setdefault(tuple(prints), len(self._numbers))

    def later(self, sequence: Sequence, at: int) -> frozenset[str]:
        """The repeated names in the items of a sequence from ``at`` on."""
        key = (id(sequence), at)
        if key not in self._later:
            self._later[key] = self.repeated.intersection(
                n for item in sequence.items[at:] for n in metavariables(item)
            )
        return self._later[key]

    def run(self, sequence: Sequence, at: int, nodes: list[Any]) -> _Run:
        """Where the fixed items of ``sequence`` from ``at`` on, up to the next ``$$$``, can stand in ``nodes``."""
        key = (id(sequence), at, id(nodes))
        known = self._runs.get(key)
        if known is None:
            known = self._runs[key] = (nodes, self._make_run(sequence, at, nodes))
        return known[1]

    def _make_run(self, sequence: Sequence, at: int, nodes: list[Any]) -> _Run:
        items = []
        for item in sequence.items[at:]:
            if isinstance(item, Many):
                break
            items.append(item)
        sure = [item for item in items if is_sure(item)]
        names = self.repeated.intersection(name for item in sure for name in metavariables(item))
        fitting = range(len(nodes) - len(items) + 1)
        prints: dict[int, dict[str, int]] = {position: {} for position in fitting}
        for offset, item in enumerate(items):
            for position in list(prints):
                bindings = self._alone(item, nodes[position + offset])
                own = prints[position]
                if bindings is None:
                    del prints[position]
                elif names and is_sure(item):
                    for name in names.intersection(bindings):
                        number = self.number(bindings[name].nodes)
                        if own.setdefault(name, number) != number:
                            del prints[position]
                            break
        return _Run(list(prints), names, list(prints.values()))

    def _alone(self, item: Any, node: Any) -> dict[str, Binding] | None:
        """What an item's names are bound to by an element of a list, None where it does not match it."""
        if isinstance(item, Value):
            return {} if item.value == node else None
        if isinstance(item, One):
            search = _Search(self)
            return search.bindings if search.one(item, node, None, "") else None
        solved = self._solve(item, node)
        return None if solved is None else solved.bindings


class _Search:
    """One attempt: the bindings made so far, in order, and the choices that are left."""

    def __init__(self, unifier: Unifier) -> None:
        self.unifier = unifier
        self.bindings: dict[str, Binding] = {}
        self.choices: list[_Choice] = []
        self.stop = 0

    def back(self) -> _Goals:
        while self.choices:
            choice = self.choices.pop()
            self.unifier.spend()
            while len(self.bindings) > choice.bound:
                self.bindings.popitem()
            goals = self._take(choice.tail, choice.items, choice.stop, choice.goals, choice.key)
            if goals is not _FAIL:
                return goals
        return _FAIL

    def _goal(self, wanted: Any, given: Any, rest: _Goals) -> _Goals:
        """Goals made after a choice may be made again, and failures are remembered by which they are."""
        return self.unifier.goal(wanted, given, rest) if self.choices else (wanted, given, rest)

    def step(self, wanted: Any, given: Any, rest: _Goals) -> _Goals:
        """Work one goal off: the goals that are left, or :data:`_FAIL`."""
        if isinstance(wanted, Node):
            if isinstance(given, Group):
                if given.label != wanted.label:
                    return _FAIL
            elif type(given).__name__ != wanted.label:
                return _FAIL
            return self._fields(wanted, given, rest)
        if isinstance(wanted, _Tail):
            return self._tail(wanted, given, rest)
        if isinstance(wanted, One):
            return rest if self.one(wanted, given, None, "") else _FAIL
        if isinstance(wanted, Display):
            if name_of(given) not in ("Set", "Dict"):
                return _FAIL
            field, nodes = next(iter(self.unifier.fields(given).items()))
            return self._goal(_Tail(wanted.sequence, 0, True), _Items(given, field, nodes, 0), rest)
        raise AssertionError(wanted)  # pragma: no cover

    def _fields(self, wanted: Node, given: Any, rest: _Goals) -> _Goals:
        fields = self.unifier.fields(given)
        if len(fields) != len(wanted.fields) and not _covers(wanted, fields):
            return _FAIL
        for name, part in reversed(wanted.fields):
            value = fields.get(name)
            if isinstance(part, Value):
                if value is not part.value and not _equal(value, part.value):
                    return _FAIL
            elif isinstance(part, Sequence):
                nodes = [] if value is None else value  # None: a list that this tree's Python does not know
                least = max(part.rest[0], 1 if part.not_empty and part.items else 0)
                if not isinstance(nodes, list) or len(nodes) < least:
                    return _FAIL
                rest = self._goal(_Tail(part, 0, True), _Items(given, name, nodes, 0), rest)
            elif isinstance(part, Index):
                nodes = self.unifier.elements(value)
                rest = self._goal(_Tail(part.sequence, 0, True), _Items(given, name, nodes, 0), rest)
            elif isinstance(part, Dotted):
                if not isinstance(value, str) or not self._dotted(part, value, given, name):
                    return _FAIL
            elif isinstance(part, One):
                if not self.one(part, value, given, name):
                    return _FAIL
            else:
                rest = self._goal(part, value, rest)
        return rest

    def _tail(self, tail: _Tail, items: _Items, rest: _Goals) -> _Goals:
        sequence, at, closed = tail
        nodes = items.nodes
        position = items.at
        while at < len(sequence.items):
            item = sequence.items[at]
            if isinstance(item, Many):
                return self._many(_Tail(sequence, at, closed), items._replace(at=position), rest)
            if position >= len(nodes):
                return _FAIL
            if isinstance(item, One):
                if not self.one(item, nodes[position], items.container, items.field, nodes, position):
                    return _FAIL
            elif isinstance(item, Value):
                if item.value != nodes[position]:
                    return _FAIL
            else:
                after = self._goal(_Tail(sequence, at + 1, closed), items._replace(at=position + 1), rest)
                return self._goal(item, nodes[position], after)
            at += 1
            position += 1
        if closed:
            return rest if position == len(nodes) else _FAIL
        self.stop = position
        return rest

    # -- $$$ -----------------------------------------------------------------------------------------------------

    def _many(self, tail: _Tail, items: _Items, rest: _Goals) -> _Goals:
        """Begin with the ``$$$`` at the head of ``tail``, unless it is known to fail from here."""
        sequence, at, closed = tail
        if closed and sequence.rest[at + 1] == len(sequence.items) - at - 1:  # no other $$$ behind it: no choice
            stop = len(items.nodes) - sequence.rest[at + 1]
            return self._go_on(tail, items, stop, rest) if stop >= items.at else _FAIL
        key = self._key(tail, items, rest)
        if self.unifier.fails(key, items.at):
            return _FAIL
        return self._take(tail, items, items.at, rest, key)

    def _key(self, tail: _Tail, items: _Items, rest: _Goals) -> tuple[Any, ...]:
        """What decides whether the search fails from here, but for ``items.at``: further on there is only less."""
        sequence, at, _ = tail
        names = self.unifier.repeated if rest is not None else self.unifier.later(sequence, at)
        bound = tuple(self._marks(names).items())
        here = items.at if sequence.items[at].name in self.unifier.repeated else -1  # what it takes matters, too
        return (id(sequence), at, id(items.nodes), id(rest), bound, here)

    def _marks(self, names: frozenset[str]) -> dict[str, int]:
        """The numbers of what the names, as far as they are bound, stand for."""
        bound = sorted(names.intersection(self.bindings))
        return {name: self.unifier.number(self.bindings[name].nodes) for name in bound}

    def _take(self, tail: _Tail, items: _Items, least: int, rest: _Goals, key: tuple[Any, ...]) -> _Goals:
        """Let the ``$$$`` take up to ``least`` or, failing that, the next place that will do; keep the further ones."""
        stop = self._next_stop(tail, items, least)
        if stop is None:
            self.unifier.fail(key, items.at, rest)
            return _FAIL
        self.choices.append(_Choice(tail, items, stop + 1, rest, len(self.bindings), key))
        return self._go_on(tail, items, stop, rest)

    def _next_stop(self, tail: _Tail, items: _Items, least: int) -> int | None:
        sequence, at, _ = tail
        most = len(items.nodes) - sequence.rest[at + 1]
        known = self.bindings.get(sequence.items[at].name)
        if known is not None:
            stop = items.at + len(known.nodes)
            return stop if least <= stop <= most else None
        if least > most or isinstance(sequence.items[at + 1], Many) or len(items.nodes) < _LONG:
            return least if least <= most else None
        run = self.unifier.run(sequence, at + 1, items.nodes)
        positions = run.where(self._marks(run.names)) if run.names else run.positions
        index = bisect_left(positions, least)
        return positions[index] if index < len(positions) and positions[index] <= most else None

    def _go_on(self, tail: _Tail, items: _Items, stop: int, rest: _Goals) -> _Goals:
        """Bind the ``$$$`` to the elements up to ``stop``."""
        sequence, at, closed = tail
        item = sequence.items[at]
        if item.name is not None:
            nodes = tuple(items.nodes[items.at : stop])
            kind = "items" if items.field == "items" and item.kind == "elements" else item.kind  # {$$$} of a dict
            binding = Binding(kind, nodes, items.container, items.field, items.nodes, items.at, stop)
            if not self._bind(item.name, binding):
                return _FAIL
        return self._goal(_Tail(sequence, at + 1, closed), items._replace(at=stop), rest)

    # -- names ---------------------------------------------------------------------------------------------------

    def one(
        self, one: One, value: Any, container: Any, field: str, siblings: list[Any] | None = None, index: int = 0
    ) -> bool:
        """Bind a ``$X`` to a value of the tree; False where it cannot be."""
        kind = capture_kind(value)
        if kind is None or (kind != one.kind and (one.kind, kind) != ("argument", "expression")):
            return False
        plain = plain_name(value)
        if plain is not None:  # the same code as that name elsewhere
            name, holder = plain
            return self._bind(one.name, Binding("name", (name_node(name),), holder or container, field, [name], 0, 1))
        nodes = (value,)
        within = [value] if siblings is None else siblings
        return self._bind(one.name, Binding(kind, nodes, container, field, within, index, index + 1))

    def _bind(self, name: str | None, binding: Binding) -> bool:
        if name is None:
            return True
        known = self.bindings.get(name)
        if known is None:
            self.bindings[name] = binding
            return True
        return same(list(known.nodes), list(binding.nodes))

    def _dotted(self, dotted: Dotted, value: str, container: Any, field: str) -> bool:
        parts = value.split(".")
        extra = len(parts) - len(dotted.parts)
        if extra < 0:
            return False
        groups = [".".join(parts[: extra + 1]), *parts[extra + 1 :]]
        for wanted, given in zip(dotted.parts, groups, strict=True):
            if isinstance(wanted, One):
                if not self.one(wanted, given, container, field):
                    return False
            elif wanted != given:
                return False
        return True


def _covers(wanted: Node, fields: dict[str, Any]) -> bool:
    """True where nothing is in the fields that the pattern does not speak of.

    The tree may be a newer Python's, with fields that the pattern's own node does not have. A definition's decorators
    are another matter: a pattern leaves them out so that they do not count.
    """
    known = {name for name, _ in wanted.fields}
    return all(
        name in known or name == "decorator_list" or value is None or value == [] for name, value in fields.items()
    )


def _equal(one: Any, other: Any) -> bool:
    """True for the same constant: 1 is not 1.0 or True, and 0.0 is not -0.0."""
    if type(one) is not type(other):
        return False
    return repr(one) == repr(other) if isinstance(one, float | complex) else bool(one == other)
