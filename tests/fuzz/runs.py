"""How many runs each fuzz test makes, and counting them.

``PATCHKIT_FUZZ=100000`` gives the number for all of them; without it each makes its own, in some ten seconds together.
CI (``CI`` in the environment) makes the same ones every time, a developer's run and a longer one new ones.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings

LONGER = int(os.environ.get("PATCHKIT_FUZZ", "0"))


def runs(number: int) -> Callable[[Any], Any]:
    """Settings for a fuzz test that makes ``number`` runs in CI."""
    return settings(
        max_examples=LONGER or number,
        deadline=None,
        derandomize=bool(os.environ.get("CI")) and not LONGER,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def comes_to(*words: str) -> Callable[[Any], Any]:
    """The outcomes of a fuzz test, each of which at least every hundredth run has: else it tests nothing."""

    def mark(test: Any) -> Any:
        test.outcomes = words
        return test

    return mark


class Outcomes:
    """What came of the runs of one test: by word, printed at its end."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.counts: Counter[str] = Counter()

    def note(self, outcome: str) -> None:
        self.counts[outcome] += 1

    def told(self) -> str:
        parts = ", ".join(f"{number:,} {word}" for word, number in sorted(self.counts.items()))
        return f"\n[fuzz] {self.what}: {sum(self.counts.values()):,} runs ({parts})"
