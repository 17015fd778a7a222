"""Which recorded patches are in place, without turning the ledger over once for each."""

from __future__ import annotations

import pytest
from support.bench import Bench

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
STOP = '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n'


def test_the_ledger_is_turned_into_values_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from patchkit.state.ledger import Ledger

    bench.patch("double", DOUBLE)
    bench.patch("stop", STOP)
    bench("apply", "double", "stop")
    calls = []
    real = Ledger.to_json
    monkeypatch.setattr(Ledger, "to_json", lambda self: calls.append(1) or real(self))
    run = bench.json("apply", "double", "stop", "--dry-run")
    assert [patch["action"] for patch in run.json["patches"]] == ["unchanged", "unchanged"]
    assert len(calls) == 1
    calls.clear()
    states = {patch["name"]: patch["state"] for patch in bench.json("list").json["patches"]}
    assert (states["double"], states["stop"]) == ("applied", "applied")
    assert len(calls) == 1


def test_applied_and_recorded(bench: Bench) -> None:
    from patchkit.model.load import load_patch
    from patchkit.ops.inplace import InPlace
    from patchkit.ops.workspace import Workspace
    from patchkit.site.environment import resolve

    path = bench.patch("double", DOUBLE)
    bench("apply", "double")

    def answers() -> tuple[bool, bool]:
        workspace = Workspace(resolve(None, str(bench.site)))
        [entry] = workspace.ledger.patches
        place = InPlace(workspace)
        return place.applied(load_patch(str(path))), place.recorded(entry)

    assert answers() == (True, True)
    bench.patch("double", DOUBLE.replace("2 * x", "x * 2"))
    assert answers() == (False, True)  # another patch by now
    bench.patch("double", DOUBLE)
    bench.write("demo/core.py", b"mine = 1\n")
    assert answers() == (False, False)
