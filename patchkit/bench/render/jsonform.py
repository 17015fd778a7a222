"""``report.json``: a report as JSON values and back, and the JSON Schema of it."""

from __future__ import annotations

from typing import Any

from patchkit.bench.observation import OBSERVATION
from patchkit.bench.report import (
    SCHEMA,
    Aftermath,
    Check,
    Cost,
    Interval,
    MetricResult,
    PatchUsed,
    PointResult,
    Report,
    Run,
)
from patchkit.bench.shape import Anything, Each, Maybe, Number, Of, Record, Table, Word, plain
from patchkit.model.recipe import Figure, Gate

_TEXT, _WHOLE, _NUMBER = Of(str), Of(int), Number()
_ARM = Word("baseline", "treatment")
_VERDICT = Word("pass", "regressed", "inconclusive", "invalid", "error")
_KIND = Maybe(Word("improved", "equal"))

_INTERVAL = Record(
    Interval,
    {
        "ratio": _NUMBER,
        "low": _NUMBER,
        "high": _NUMBER,
        "level": _NUMBER,
        "pairs": _WHOLE,
        "deviation": _NUMBER,
    },
)
_GATE = Record(
    Gate,
    {
        "metric": _TEXT,
        "min_ratio": Maybe(_NUMBER),
        "max_ratio": Maybe(_NUMBER),
        "minimum": Maybe(_NUMBER),
        "maximum": Maybe(_NUMBER),
    },
)
_METRIC = Record(
    MetricResult,
    {
        "metric": _TEXT,
        "unit": _TEXT,
        "better": Word("higher", "lower"),
        "baseline": Maybe(_NUMBER),
        "treatment": Maybe(_NUMBER),
        "ratios": Each(_NUMBER),
        "interval": Maybe(_INTERVAL),
        "gate": Maybe(_GATE),
        "verdict": Maybe(_VERDICT),
        "kind": _KIND,
        "tripped": Of(bool),
        "reason": _TEXT,
        "advice": Maybe(_TEXT),
        "figure": Maybe(
            Record(
                Figure,
                {"metric": _TEXT, "baseline": Maybe(_NUMBER), "treatment": Maybe(_NUMBER), "ratio": Maybe(_NUMBER)},
            ),
        ),
    },
)
_POINT = Record(
    PointResult,
    {
        "label": _TEXT,
        "verdict": _VERDICT,
        "kind": _KIND,
        "reason": _TEXT,
        "metrics": Each(_METRIC),
        "checks": Each(
            Record(Check, {"name": _TEXT, "state": Word("held", "failed", "not-checked", "noted"), "text": _TEXT}),
        ),
        "costs": Each(
            Record(
                Cost,
                {"arm": _ARM, "millijoule_per_token": Maybe(_NUMBER), "tokens_per_dollar": Maybe(_NUMBER)},
            )
        ),
        "touch": Maybe(_TEXT),
    },
)
_RUN = Record(
    Run,
    {
        "order": _WHOLE,
        "point": _TEXT,
        "arm": _ARM,
        "kind": Word("preflight", "discarded", "measured", "confirm", "traced"),
        "pair": Maybe(_WHOLE),
        "started": _TEXT,
        "seconds": _NUMBER,
        "observation": OBSERVATION,
    },
)
REPORT = Record(
    Report,
    {
        "recipe": _TEXT,
        "summary": _TEXT,
        "digest": _TEXT,
        "verdict": _VERDICT,
        "kind": _KIND,
        "reason": _TEXT,
        "points": Each(_POINT),
        "runs": Each(_RUN),
        "patches": Each(
            Record(
                PatchUsed,
                {"name": _TEXT, "digest": _TEXT, "distribution": Maybe(_TEXT), "version": Maybe(_TEXT)},
            )
        ),
        "aftermath": Record(
            Aftermath,
            {
                "action": Word("kept", "reverted", "unchanged", "in-memory", "not-put-back"),
                "text": _TEXT,
                "confirmed": Maybe(_NUMBER),
            },
        ),
        "started": _TEXT,
        "seconds": _NUMBER,
        "folder": _TEXT,
        "site": _TEXT,
        "engine": _TEXT,
        "versions": Table(_TEXT),
        "machine": Table(_TEXT),
        "label": Maybe(_TEXT),
        "source": Maybe(_TEXT),
        "notes": Each(_TEXT),
        "trace": Each(Table(Anything())),
    },
)


def report_json(report: Report) -> dict[str, Any]:
    """The report as JSON values."""
    return {"schema": SCHEMA, **plain(report)}


def read_report(value: Any) -> Report:
    """A report out of its JSON values.

    Raises:
        ValueError: Another schema, an unknown key, or a value of another type; the message names the key.
    """
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise ValueError(f'a report is an object with "schema": {SCHEMA}')
    made: Report = REPORT.read("report", {name: item for name, item in value.items() if name != "schema"})
    return made


def report_schema() -> dict[str, Any]:
    """The JSON Schema (draft 7) of ``report.json``."""
    shape = REPORT.schema()
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": f"urn:patchkit:report:{SCHEMA}",
        "title": f"patchkit report, schema {SCHEMA}",
        **shape,
        "properties": {"schema": {"const": SCHEMA}, **shape["properties"]},
        "required": ["schema", *shape["required"]],
    }
