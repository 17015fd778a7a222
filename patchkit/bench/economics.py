"""Figures that follow from others: inter-token latency, energy and cost. Reported, never gated."""

from __future__ import annotations

from patchkit.bench.report import Cost
from patchkit.model.recipe import ArmName, Economics


def costs(economics: Economics, arm: ArmName, throughput: float | None) -> Cost:
    """What an output token costs at ``throughput`` tokens per second of all chips together.

    Energy takes the rated power, so it is an upper bound. What cannot be known is None.
    """
    if throughput is None or throughput <= 0:
        return Cost(arm, None, None)
    watts = None if economics.chip_watts is None else economics.chip_watts * economics.chips
    return Cost(
        arm,
        None if watts is None else 1000 * watts / throughput,
        None if not economics.price_per_hour else throughput * 3600 / economics.price_per_hour,
    )


def inter_token_latency(main: float, ttft: float, max_tokens: int) -> float | None:
    """Seconds between two tokens of a request: ``main`` seconds of a generation of ``max_tokens`` tokens less its TTFT.

    It divides by ``max_tokens`` - 1: the first token comes with the prefill. None for a single token.
    """
    return (main - ttft) / (max_tokens - 1) if max_tokens > 1 else None
