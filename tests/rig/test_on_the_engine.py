"""What only the real engine shows (minutes): in the rig that PATCHKIT_RIG names, or one made in the test cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.rigs import real_rig

from patchkit.cli.main import main
from patchkit.rig.recipe import ADAPTATIONS
from patchkit.rig.state import Rig

pytestmark = [pytest.mark.rig, pytest.mark.real, pytest.mark.slow]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def rig() -> Rig:
    return real_rig()


def test_what_the_logits_patches_claim(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    status = main(["--json", "--patches", str(ROOT / "patches"), "rig", "prove", rig.folder])
    answer = json.loads(capsys.readouterr().out)
    assert [check for check in answer["checks"] if not check["ok"]] == []
    assert status == 0
    greedy = {arm["name"]: arm["run"]["modes"][0]["phases"] for arm in answer["arms"]}
    counted = {name: [one["compilations"].get("jit(sample)", 0) for one in phases] for name, phases in greedy.items()}
    assert counted == {"stock": [0] * 4, "logits-greedy-naive": [1, 1, 0, 0], "logits-greedy": [0] * 4}


def test_the_dense_attention_is_the_kernels_reference(rig: Rig) -> None:
    """Equal to rounding: of the output's bfloat16, and of the reference's weights, which have the cache's type."""
    script = Path(__file__).with_name("dense.py")
    done = subprocess.run([rig.python, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for found in json.loads(done.stdout.splitlines()[-1]):
        assert found["cache"]
        assert found["difference"] <= found["rounding"] * max(1.0, found["size"])


def interpreted(rig: Rig, patches: list[str], *settings: str) -> dict[tuple[str, str], dict[str, Any]]:
    """What tests/rig/interpret.py finds, by setting and batch, with ``patches`` in the memory of its process."""
    names = [f"--with={name}" for name in (*ADAPTATIONS, *patches)]
    folders = ["--patches", str(ROOT / "patchkit" / "rig" / "patches"), "--patches", str(ROOT / "patches")]
    script = Path(__file__).with_name("interpret.py")
    command = [sys.executable, "-m", "patchkit", "--python", rig.python, *folders, "run", *names, "--"]
    done = subprocess.run(
        [*command, "python", str(script), *settings],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    facts = [json.loads(line[6:]) for line in done.stdout.splitlines() if line.startswith("FACTS ")]
    return {(one["setting"], one["batch"]): one for one in facts}


def test_the_kernel_with_other_block_sizes(rig: Rig) -> None:
    """In interpret mode; the pages hold 2,048 tokens, so that the release's own block is one of 2,048."""
    stock = interpreted(rig, [], "unset")
    found = interpreted(rig, ["rpa-block-size"], "unset", "128", "256", "2048")
    batches = [batch for _, batch in stock]
    assert len(batches) == 3
    assert len(found) == 12
    for (setting, batch), one in found.items():
        released = stock["unset", batch]
        assert one["cache"] == released["cache"]
        size = "2048" if setting == "unset" else setting
        assert one["names"] == [f"RPAd-p_128-bq_1_1-bkv_{size}_{size}"]
        if setting in ("unset", "2048") or "short" in batch:  # each sequence fits one block
            assert one["output"] == released["output"]
        else:
            assert 0 < one["difference"] <= 0.01 * max(1.0, one["size"])
