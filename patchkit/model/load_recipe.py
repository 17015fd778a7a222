"""From the bytes of a recipe to a :class:`~patchkit.model.recipe.Recipe`, or to every reason why not.

Settings stand in layers, and the later wins: the recipe's own, those of a point, those of an arm, those of an arm of a
point. Tables with free names (``env``, ``options``, ``speculative``, ``metrics``) are laid over each other key by key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from patchkit.model.checks import quote
from patchkit.model.document import Document, read_document
from patchkit.model.heads import check_stem, refuse_later_schema
from patchkit.model.keys import home_of
from patchkit.model.recipe import (
    METRICS,
    Arm,
    ArmName,
    Economics,
    Engine,
    Figure,
    Gate,
    Gates,
    LogLine,
    Point,
    Protocol,
    Recipe,
    Workload,
)
from patchkit.model.recipe_keys import ANY, ARMS, DEFAULT, HOMES, SCHEMA, TABLES
from patchkit.model.recipe_rules import check_gate, check_kind, check_recipe, default_gates, default_tokens
from patchkit.runtime.ledger import sha256_hex
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.model.lines import KeyPath

_MAPS = ("speculative", "options", "env", "metrics")


class _Layer(NamedTuple):
    """What one place says of an arm: only what is written there, checked."""

    workload: Mapping[str, Any] = {}
    engine: Mapping[str, Any] = {}
    patches: tuple[str, ...] | None = None

    def over(self, other: _Layer) -> _Layer:
        """``other`` with this laid over it."""
        engine = {**other.engine, **self.engine}
        for name in _MAPS:
            if name in engine:
                engine[name] = {**other.engine.get(name, {}), **self.engine.get(name, {})}
        patches = other.patches if self.patches is None else self.patches
        return _Layer({**other.workload, **self.workload}, engine, patches)


class _Place(NamedTuple):
    """One point as written: its label, what it shares, what its arms have otherwise, its figures."""

    label: str
    shared: _Layer
    arms: Mapping[str, _Layer]
    figures: tuple[Figure, ...]


def load_recipe(path: str) -> Recipe:
    """Read and check one recipe.

    Raises:
        PatchFileError: It cannot be read, or it is wrong; ``details["problems"]`` has every problem.
    """
    return parse_recipe(read_document(path), path)


def parse_recipe(data: bytes, path: str | None) -> Recipe:
    """Check the bytes of a recipe. ``path`` names it in messages; its stem must be the recipe's name.

    Raises:
        PatchFileError: The file is wrong; ``details["problems"]`` has every problem.
    """
    document = Document(data, path, home=lambda name, table: home_of(name, beside=table, tables=HOMES))
    _check_schema(document)
    values = document.read(document.root, (), TABLES[""]).values
    check_stem(document, values.get("name"))
    shared = _layer(document, document.root, (), "engine")
    arms = _arms(document, values, ())
    if shared.patches is not None:
        if arms["treatment"].patches is not None:
            document.key_problem(("treatment", "patches"), "patches stands at the top already: say it in one place")
        arms["treatment"] = arms["treatment"]._replace(patches=shared.patches)
        shared = shared._replace(patches=None)
    places = _places(document, values.get("point", ()))
    known = _known_metrics([shared, *arms.values(), *(layer for place in places for layer in _layers(place))])
    figures = _figures(document, values.get("figures"), ("figures",), known)
    if places and figures:
        document.table_problem(("figures",), ("figures",), "with [[point]], figures stand in each point")
    places = [
        place._replace(figures=_figures(document, raw.get("figures"), ("point", at, "figures"), known))
        for at, (place, raw) in enumerate(zip(places, values.get("point", ()), strict=True), 1)
    ]
    kind = shared.engine.get("kind")
    if kind is not None:
        check_kind(document, kind, _engines(document.root))
    points = _points(shared, arms, places, figures) if kind is not None else ()
    gates = _gates(document, values.get("gates"), known, points)
    protocol = _protocol(document, values)
    economics = Economics(**_read(document, values.get("economics"), ("economics",), "economics"))
    evidence = _evidence(document, values.get("evidence", ()))
    if not document.problems:
        check_recipe(document, points, gates, evidence, values.get("source"))
    document.finish()
    return Recipe(
        name=values["name"],
        summary=values.get("summary", values["name"].replace("-", " ")),
        points=points,
        gates=gates,
        protocol=protocol,
        economics=economics,
        evidence=evidence,
        description=values.get("description", ""),
        links=values.get("links", ()),
        tags=values.get("tags", ()),
        source=values.get("source"),
        path=path,
        data=data,
        digest=sha256_hex(data),
    )


def _check_schema(document: Document) -> None:
    """Stop at a file of a later format, and at one that is a patch."""
    refuse_later_schema(document, SCHEMA)
    if "target" in document.root and "engine" not in document.root:
        document.table_problem((), ("target",), "this is a patch file, not a recipe: it has a [target] and no [engine]")
        document.finish(hint="name a recipe; it names the patches that it tries")


def _layer(document: Document, raw: Mapping[str, Any], at: KeyPath, engine: str) -> _Layer:
    """What the tables below ``at`` say; ``raw`` has been read as far as its own keys go."""
    workload = _read(document, raw.get("workload"), (*at, "workload"), "workload")
    settings = _read(document, raw.get("engine"), (*at, "engine"), engine)
    for name in _MAPS:
        if name in settings:
            settings[name] = _read(document, settings[name], (*at, "engine", name), f"engine.{name}")
    if workload.get("temperature") == DEFAULT:
        workload["temperature"] = None
    patches = raw.get("patches")
    if not isinstance(patches, list):
        return _Layer(workload, settings)
    return _Layer(workload, settings, tuple(patch for patch in patches if isinstance(patch, str)))


def _read(document: Document, raw: Any, at: KeyPath, table: str) -> dict[str, Any]:
    """The right values of a table; none where it is not there, or is no table (which has been said)."""
    return document.read(raw, at, TABLES[table]).values if isinstance(raw, dict) else {}


def _arms(document: Document, values: Mapping[str, Any], at: KeyPath) -> dict[str, _Layer]:
    arms = {}
    for name in ARMS:
        raw = values.get(name, {})
        document.read(raw, (*at, name), TABLES["arm"])
        arms[name] = _layer(document, raw, (*at, name), "arm.engine")
    return arms


def _places(document: Document, tables: Iterable[dict[str, Any]]) -> list[_Place]:
    """The points as written, without their figures."""
    places: list[_Place] = []
    for index, raw in enumerate(tables, 1):
        at: KeyPath = ("point", index)
        values = document.read(raw, at, TABLES["point"]).values
        label = values.get("label", "")
        twin = next((number for number, place in enumerate(places, 1) if label and place.label == label), None)
        if twin is not None:
            document.key_problem((*at, "label"), f"{quote(label)} is the label of point {twin} already")
        shared = _layer(document, raw, at, "arm.engine")
        places.append(_Place(label, shared, _arms(document, values, at), ()))
    return places


def _layers(place: _Place) -> Iterator[_Layer]:
    yield place.shared
    yield from place.arms.values()


def _known_metrics(layers: Iterable[_Layer]) -> tuple[str, ...]:
    """The metrics that can be named: ours, and those that a command's result is mapped to."""
    return tuple(dict.fromkeys([*METRICS, *(name for layer in layers for name in layer.engine.get("metrics", {}))]))


def _engines(root: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    """Every table of engine settings, with its place; the recipe's own first."""

    def inside(table: Any, at: KeyPath) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
        if isinstance(table, dict) and isinstance(table.get("engine"), dict):
            yield (*at, "engine"), table["engine"]

    yield from inside(root, ())
    tables = root.get("point")
    listed = [table for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []
    for at, table in [((), root), *((("point", index), table) for index, table in enumerate(listed, 1))]:
        if at:
            yield from inside(table, at)
        for arm in ARMS:
            yield from inside(table.get(arm), (*at, arm))


def _points(
    shared: _Layer, arms: Mapping[str, _Layer], places: Iterable[_Place], figures: tuple[Figure, ...]
) -> tuple[Point, ...]:
    """Every comparison, whole."""
    alone = _Place("", _Layer(), dict.fromkeys(ARMS, _Layer()), figures)
    points = []
    for place in list(places) or [alone]:
        base = place.shared.over(shared)
        baseline, treatment = (_arm(name, place.arms[name].over(arms[name].over(base))) for name in ARMS)
        points.append(Point(place.label, baseline, treatment, place.figures))
    return tuple(points)


def _arm(name: str, layer: _Layer) -> Arm:
    return Arm(cast(ArmName, name), layer.patches or (), Workload(**layer.workload), Engine(**layer.engine))


def _figures(document: Document, raw: Any, at: KeyPath, known: Iterable[str]) -> tuple[Figure, ...]:
    figures = []
    for metric, values in _of_metrics(document, raw, at, "figures", known):
        if not values and isinstance(raw[metric], dict) and not raw[metric]:
            document.table_problem((*at, metric), (*at, metric), "needs baseline, treatment or ratio")
        figure = Figure(metric, values.get("baseline"), values.get("treatment"), values.get("ratio"))
        if None not in (figure.baseline, figure.treatment, figure.ratio):
            place = (*at, metric, "ratio")
            document.table_problem(place, place, "baseline and treatment say it already")
        figures.append(figure)
    return tuple(figures)


def _of_metrics(
    document: Document, raw: Any, at: KeyPath, table: str, known: Iterable[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tables of metrics below ``raw``, with what they say; a metric that nothing can measure is a problem."""
    if not isinstance(raw, dict):
        return
    shape = TABLES[table]
    assert shape.others is not None
    keys = {**shape.keys, **{name: shape.others._replace(name=name) for name in known if name not in shape.keys}}
    values = document.read(raw, at, shape._replace(keys=keys, others=None)).values
    for metric in known:
        if metric in values:
            yield metric, _read(document, values[metric], (*at, metric), str(shape.others.of))


def _gates(document: Document, raw: Any, known: Iterable[str], points: tuple[Point, ...]) -> Gates:
    tokens = default_tokens(points)
    if not isinstance(raw, dict):
        return Gates(default_gates(document, points), tokens)
    gates = []
    for metric, values in _of_metrics(document, raw, ("gates",), "gates", known):
        gate = Gate(metric, *(values.get(key) for key in ("min_ratio", "max_ratio", "min", "max")))
        check_gate(document, ("gates", metric), gate, set(raw[metric]))
        gates.append(gate)
    said = {key: raw[key] for key in ("tokens", "recompiles", "probes") if key in raw}
    if said.get("recompiles") == ANY:
        said["recompiles"] = None
    return Gates(tuple(gates), **{"tokens": tokens, **said})


def _protocol(document: Document, values: Mapping[str, Any]) -> Protocol:
    protocol = Protocol(**_read(document, values.get("protocol"), ("protocol",), "protocol"))
    if protocol.pairs_min > protocol.pairs_max:
        key = "pairs_max" if "pairs_max" in values["protocol"] else "pairs_min"
        bound = "at least pairs_min" if key == "pairs_max" else "at most pairs_max"
        other, own = (protocol.pairs_min, protocol.pairs_max) if key == "pairs_max" else reversed(protocol[:2])
        document.key_problem(("protocol", key), f"must be {bound}, which is {other}, found {own}")
    return protocol


def _evidence(document: Document, tables: Iterable[dict[str, Any]]) -> tuple[LogLine, ...]:
    lines = []
    for index, raw in enumerate(tables, 1):
        values = document.read(raw, ("evidence", index), TABLES["evidence"]).values
        count = values.get("count", "1+")
        exact = isinstance(count, int)
        least = count if exact else int(count.removesuffix("+"))
        lines.append(LogLine(values.get("log", ""), values.get("arm"), least, count if exact else None))
    return tuple(lines)
