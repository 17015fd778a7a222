"""Which engine a recipe's ``kind`` means."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patchkit.bench.engine import Engine
    from patchkit.model.patch import Patch
    from patchkit.model.recipe import EngineKind


def engine_of(kind: EngineKind) -> Engine:
    """The engine of a kind."""
    if kind == "vllm":
        from patchkit.bench.offline import Vllm

        return Vllm()
    if kind == "openai":
        from patchkit.bench.served.engine import Openai

        return Openai()
    if kind == "tpu-cpu-rig":
        from patchkit.bench.rigged import TpuCpuRig

        return TpuCpuRig()
    from patchkit.bench.commanded import Command

    return Command()


def own_patches(kind: EngineKind) -> list[Patch]:
    """The patches that an engine of this kind cannot do without, in either arm.

    They are applied in its site. Whoever holds an arm in memory names them as well: what is in memory hides what is on
    disk.
    """
    if kind == "tpu-cpu-rig":
        from patchkit.rig.run import adaptations

        return adaptations()
    return []
