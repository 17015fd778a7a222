"""A file to explain failures in, and the explanations as they are printed."""

from __future__ import annotations

import ast
import json
from typing import Any, Literal

from patchkit.edit import uniqueness
from patchkit.edit.explain import Diagnosis, Problem, explain_many, explain_none
from patchkit.edit.outline import Outline
from patchkit.edit.source import Source

# The shape of tpu_inference/runner/tpu_runner.py around its sampling, line for line what matters to an anchor.
RUNNER = """\
import jax.numpy as jnp
from vllm.sample import sampler


class TPUModelRunner:
    def sample_tokens(self, grammar_output):
        with jax.set_mesh(self.mesh):
            return self._sample_from_logits(grammar_output)

    def _sample_from_logits(self, logits, full_logits, metadata):
        if metadata is None:
            logits = logits.astype(jnp.float32)
            with self.maybe_forbid_compile:
                next_tokens, processed_logits = sample(
                    self.rng, self.mesh, logits)
        else:
            bonus_logits = logits[metadata.bonus]

        logits = logits.astype(jnp.float32)
        if full_logits is not None:
            full_logits = full_logits.astype(jnp.float32)
        return logits


def warm_up(runner):
    runner.sample_tokens(None)
"""
SAMPLE = "TPUModelRunner._sample_from_logits"


def make(
    anchor: str,
    text: str = RUNNER,
    kind: Literal["find", "match"] = "find",
    *,
    scope: str | None = None,
    inside: str | None = None,
    **more: Any,
) -> Problem:
    source = Source(text.encode("utf-8", "surrogateescape"), path="pkg/runner.py")
    try:
        outline: Outline | None = Outline(source, ast.parse(text))
    except (SyntaxError, ValueError):
        outline = None
    pattern = None
    if kind == "match":
        from patchkit.edit.pattern import compile_pattern

        pattern = compile_pattern(anchor, ast.parse)
    problem = Problem(source, outline, anchor, kind, scope, inside, [], "1", pattern, ast.parse)
    problem = problem._replace(regions=uniqueness.regions_of(problem, scope, inside))
    return problem._replace(**more)


def none(problem: Problem, *files: tuple[str, bytes], versions: tuple[str, ...] = ()) -> Diagnosis:
    assert uniqueness.hits(problem, problem.regions) == []
    return explain_none(problem, siblings=lambda: iter(files), other_versions=versions)


def many(problem: Problem) -> Diagnosis:
    return explain_many(problem, uniqueness.hits(problem, problem.regions))


def shown(diagnosis: Diagnosis) -> str:
    assert all("\n" not in line for line in diagnosis.lines)
    assert all(line.isprintable() for line in diagnosis.lines)
    json.dumps(diagnosis.data)
    return "\n".join(diagnosis.lines)
