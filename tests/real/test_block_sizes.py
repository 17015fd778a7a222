"""What ``rpa-block-size`` answers on real kernels, asked of the function itself on CPU JAX (no kernel runs)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_shipped_patches import run

pytestmark = [pytest.mark.real, pytest.mark.slow]

BKV = "PATCHKIT_RPA_DECODE_BKV"
COMPUTE = "PATCHKIT_RPA_DECODE_BKV_COMPUTE"
RELEASES = ("0.18.0", "0.23.0", "0.24.0", "0.29.0")

Ask = Callable[..., tuple[list[dict[str, Any]], str]]


def decode(bkv: int, compute: int) -> dict[str, int]:
    return {"bq_sz": 1, "bkv_sz": bkv, "bq_csz": 1, "bkv_csz": compute}


@pytest.fixture(scope="module", params=RELEASES)
def ask(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    wheel: Callable[[str, str], Path],
    install: Callable[[Path, Path], Path],
    jax_python: Path,
) -> Ask:
    """``ask(settings..., patched=True)``: the answers, and what was printed before them."""
    trees = {}
    for patched in (False, True):
        site = tmp_path_factory.mktemp("tree") / "site-packages"
        trees[patched] = install(wheel("tpu-inference", request.param), site)
    assert run(trees[True], "apply", "rpa-block-size").status == 0

    def ask(*settings: dict[str, Any], patched: bool = True) -> tuple[list[dict[str, Any]], str]:
        script = Path(__file__).parent / "block_sizes.py"
        done = subprocess.run(
            [jax_python, script, trees[patched]],
            input=json.dumps(settings),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        *printed, answer = done.stdout.splitlines()
        results = json.loads(answer)["results"]
        assert len(results) == len(settings)
        return results, "\n".join(printed)

    return ask


def test_unset_or_empty_is_the_release(ask: Ask) -> None:
    settings = [
        {"env": env, "case": case, "tpu": tpu, "page_size": page, "pages": pages}
        for env in ({}, {BKV: ""}, {BKV: " ", COMPUTE: ""})
        for case in ("DECODE", "PREFILL", "MIXED")
        for tpu in (5, 6, 7)
        for page, pages in ((128, 16), (32, 3), (16, 512))
    ]
    stock, _ = ask(*settings, patched=False)
    patched, printed = ask(*settings)
    assert patched == stock
    assert printed == ""
    assert stock[0] == decode(2048, 2048)  # what the study saw for Gemma 2B on v5e


def test_an_override_is_taken_for_decode_alone_and_reported_once_each(ask: Ask) -> None:
    results, printed = ask(
        {"env": {BKV: "256"}},
        {"env": {BKV: "128"}, "tpu": 7},
        {"env": {BKV: "256", COMPUTE: "128"}},
        {"env": {COMPUTE: "512"}},
        {"env": {BKV: "256"}, "case": "MIXED"},
        {"env": {BKV: "256"}, "case": "PREFILL"},
    )
    stock, _ = ask({"case": "MIXED"}, {"case": "PREFILL"}, patched=False)
    assert results[:4] == [decode(256, 256), decode(128, 128), decode(256, 128), decode(2048, 512)]
    assert results[4:] == stock
    assert printed.splitlines() == [
        "[patchkit] rpa-block-size: decode bkv_sz=256 bkv_csz=256 page_size=128 max_kv=2048",
        "[patchkit] rpa-block-size: decode bkv_sz=128 bkv_csz=128 page_size=128 max_kv=2048",
        "[patchkit] rpa-block-size: decode bkv_sz=256 bkv_csz=128 page_size=128 max_kv=2048",
        "[patchkit] rpa-block-size: decode bkv_sz=2048 bkv_csz=512 page_size=128 max_kv=2048",
    ]


def test_an_override_is_capped_at_the_maximal_context(ask: Ask) -> None:
    results, _ = ask(
        {"env": {BKV: "4096"}},
        {"env": {BKV: "512", COMPUTE: "512"}, "pages": 3},
        {"env": {BKV: "512", COMPUTE: "128"}, "pages": 3},
    )
    assert results == [decode(2048, 2048), decode(384, 384), decode(384, 128)]


@pytest.mark.parametrize("name", [BKV, COMPUTE])
def test_what_is_not_a_positive_multiple_of_the_page_size_is_refused(ask: Ask, name: str) -> None:
    values = ["0", "-128", "100", "129", "1.5", "2k", "None"]
    results, printed = ask(*({"env": {name: value}} for value in values))
    assert results == [
        {"error": f"{name}={value!r} must be a positive multiple of the page size, 128 tokens"} for value in values
    ]
    assert printed == ""


def test_a_bad_value_does_not_touch_the_other_cases(ask: Ask) -> None:
    results, _ = ask({"env": {BKV: "nonsense"}, "case": "MIXED"})
    stock, _ = ask({"case": "MIXED"}, patched=False)
    assert results == stock


def test_a_compute_block_that_does_not_divide_the_fetched_block_is_refused(ask: Ask) -> None:
    results, _ = ask(
        {"env": {BKV: "384", COMPUTE: "256"}},
        {"env": {BKV: "256", COMPUTE: "512"}},
        {"env": {BKV: "512", COMPUTE: "256"}, "pages": 3},  # only the cap makes it wrong
    )
    said = "must divide the decode block of"
    assert results == [
        {"error": f"{COMPUTE}=256 {said} 384 tokens (page size 128, context 2048)"},
        {"error": f"{COMPUTE}=512 {said} 256 tokens (page size 128, context 2048)"},
        {"error": f"{COMPUTE}=256 {said} 384 tokens (page size 128, context 384)"},
    ]
