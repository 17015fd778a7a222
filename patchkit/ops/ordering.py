"""The order of patches: as they came, but for what each wants to come after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchkit.errors import GuardError


def sorted_by_after(wishes: Mapping[str, Sequence[str]]) -> list[str]:
    """The names in their order, with each behind those that it wants to come after.

    Args:
        wishes: The names, and what each wants before it; what is none of the names does not count.

    Raises:
        GuardError: ``after-cycle``.
    """
    done: dict[str, None] = {}
    rest = list(wishes)
    while rest:
        for name in rest:
            if done.keys() >= {one for one in wishes[name] if one in wishes}:
                break
        else:
            raise GuardError(
                f"the patches {', '.join(rest)} each want to come after another of them",
                code="after-cycle",
                hint="take one name out of an `after`",
            )
        rest.remove(name)
        done[name] = None
    return list(done)
