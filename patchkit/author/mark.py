"""What a scratch copy says of itself: the release that it is a copy of."""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING

from patchkit.errors import PlanError
from patchkit.runtime.ledger import open_text

if TYPE_CHECKING:
    from patchkit.site.distribution import Distribution

MARK = ".patchkit-edit.json"
"""The file's name; it lies at the top of the copy, where no distribution has files."""


def write_mark(folder: str, distribution: Distribution) -> None:
    """Say in ``folder`` that it is a copy of ``distribution``.

    Raises:
        OSError: It cannot be written.
    """
    mark = {"distribution": distribution.normalized, "version": distribution.version}
    with open(os.path.join(folder, MARK), "w", encoding="utf-8") as text:
        json.dump(mark, text)


def check_mark(folder: str, distribution: Distribution) -> bool:
    """Refuse a scratch copy of another distribution or release: the difference would be taken for the user's.

    Returns:
        Whether the folder has a mark. One without is somebody's own copy, and taken as it is.

    Raises:
        PlanError: ``stale-copy``.
    """
    try:
        with open_text(os.path.join(folder, MARK)) as text:
            mark = json.load(text)
        held = (str(mark["distribution"]), str(mark["version"]))
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if held[0] != distribution.normalized:
        raise PlanError(
            f"{folder}: is a copy of {held[0]} {held[1]}, not of {distribution.name}",
            code="stale-copy",
            hint=f"a patch of it is made with `patchkit create NAME {held[0]} --from {shlex.quote(folder)}`",
            details={"path": folder, "held": held[1], "of": held[0], "installed": distribution.version},
        )
    if held[1] != distribution.version:
        raise PlanError(
            f"{folder}: is a copy of {held[0]} {held[1]}, and {distribution.name} {distribution.version} is installed: "
            "what upstream changed in between would become part of the patch",
            code="stale-copy",
            hint=f"install {held[0]}=={held[1]} to make the patch; `patchkit port` carries it over then",
            details={"path": folder, "held": held[1], "installed": distribution.version},
        )
    return True
