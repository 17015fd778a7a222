"""``patchkit.require`` in a process of ``patchkit run``: it is memory that counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.overlays import Stage, edit
from support.sites import bare_site

from patchkit.model.load import load_patch
from patchkit.ops.apply import apply_site

ROOT = Path(__file__).parents[2]
ASK = """
import json, sys
sys.path.insert(0, ROOT)
BEFORE
from patchkit.runtime.require import require
out = {}
for name in ("alone", "leaf", "needless", "nobody"):
    try:
        require(name)
        out[name] = "holds"
    except Exception as error:
        found = error.details["patches"][0]
        out[name] = [found["state"], found["reason"], error.hint]
print(json.dumps(out))
""".replace("ROOT", repr(str(ROOT)))
NEEDLESS = edit("awk/lazy.py") + '[[upstreamed]]\nversions = ">=1"\n'


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """``leaf`` is applied on disk, ``alone`` is in memory."""
    stage = Stage(tmp_path)
    stage.plan(leaf=edit("awk/sub/leaf.py"))
    apply_site(bare_site(stage.site), [load_patch(str(tmp_path / "leaf.toml"))], notice=lambda text: None)
    stage.show(alone=edit("awkalone.py"), needless=NEEDLESS)
    return stage


def test_memory_counts_and_not_the_disk(stage: Stage) -> None:
    assert stage.python(ASK.replace("BEFORE", "")) == {
        "alone": "holds",
        "leaf": [
            "absent",
            "is not among what `patchkit run` has in memory here (alone)",
            "patchkit run --with alone --with leaf -- CMD",
        ],
        "needless": "holds",
        "nobody": [
            "absent",
            "is not among what `patchkit run` has in memory here (alone)",
            "patchkit run --with alone --with nobody -- CMD",
        ],
    }


def test_without_the_hook_the_disk_counts(stage: Stage) -> None:
    """As under ``-E``, or where a program made its child's environment itself: the variable alone proves nothing."""
    env = {**stage.environment(), "PYTHONPATH": str(stage.site)}
    found = stage.python(ASK.replace("BEFORE", ""), env=env)
    assert found["leaf"] == "holds"
    said = "is not applied here, and `patchkit run` has nothing in the memory of this process"
    assert found["alone"][:2] == ["absent", said]
    assert found["alone"][2].startswith("patchkit run --with alone -- CMD; or on disk: patchkit ")


def test_a_module_that_another_hook_brought(stage: Stage) -> None:
    before = "import importlib.util; spec = importlib.util.spec_from_file_location('awkalone', FILE); "
    before += (
        "sys.modules['awkalone'] = module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)"
    )
    path = str(stage.site / "awkalone.py")
    script = stage.work / "script.py"
    script.write_text(ASK.replace("BEFORE", before.replace("FILE", repr(path))))
    done = stage.run(str(script))
    assert f"awkalone came from {path} by another import hook" in done.stderr
    assert f'"alone": ["shadowed", "imports took {path} instead"' in done.stdout


def test_a_site_that_is_named_is_asked_on_disk(stage: Stage) -> None:
    code = f"import sys, json; sys.path.insert(0, {str(ROOT)!r}); from patchkit.runtime.require import require; "
    code += f"require('leaf', site={str(stage.site)!r}); print(json.dumps(1))"
    assert stage.python(code) == 1
