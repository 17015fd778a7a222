"""How far the properties look: little in CI, as far as one likes by hand."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

#: `PATCHKIT_PROPERTIES=50 python -m pytest tests/properties` tries fifty times as many examples.
FACTOR = int(os.environ.get("PATCHKIT_PROPERTIES", "1"))
#: CI tells of the first failure as it is: to make it small takes minutes, and is for whoever looks into it.
PHASES = tuple(phase for phase in Phase if phase is not Phase.shrink or not os.environ.get("CI"))


def effort(examples: int, **further: int) -> settings:
    """Settings for that many examples in CI."""
    return settings(
        max_examples=examples * FACTOR,
        deadline=None,
        phases=PHASES,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        **further,
    )
