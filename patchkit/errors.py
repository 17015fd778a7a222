"""The one hierarchy of errors, each with a code, a message, a hint and an exit status.

The library raises them and never prints; :mod:`patchkit.cli` is the only place that turns them into
output and a process status. ``details`` is data for ``--json`` and for the renderer: it must hold
nothing but JSON values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class PatchkitError(Exception):
    """Anything that patchkit refuses or cannot do.

    Args:
        message: One or more lines for a person: what was found and what was expected.
        hint: The way out, in the imperative, often the next command to type.
        code: A stable machine-readable word; defaults to the class's own.
        details: Further JSON values (``path``, ``line``, ``key``, ``candidates`` ...).
    """

    code: str = "error"
    exit_status: int = 70

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code
        self.details: dict[str, Any] = dict(details or {})

    def __str__(self) -> str:
        # Callers put the patch or the place in front of ``message`` on the way up.
        return self.message

    def to_json(self) -> dict[str, Any]:
        """Return the ``error`` object of ``--json``: code, message, hint, and the details beside them."""
        return {**self.details, "code": self.code, "message": self.message, "hint": self.hint}


class UsageError(PatchkitError):
    """The command line or an argument is wrong."""

    code = "usage"
    exit_status = 2


class PatchFileError(PatchkitError):
    """A patch file, recipe or project list is wrong: TOML, unknown key, two actions, a path that leads out."""

    code = "patch-file"
    exit_status = 2


class GuardError(PatchkitError):
    """A guard refused: not installed, another version, marker false, a requirement or conflict."""

    code = "guard"
    exit_status = 3


class PlanError(PatchkitError):
    """The patch does not fit: a file that is not the distribution's, an overlap, a result that does not parse."""

    code = "plan"
    exit_status = 4


class AnchorError(PlanError):
    """An anchor matches another number of times than the patch says."""

    code = "anchor"


class ConditionError(PlanError):
    """A precondition or postcondition does not hold."""

    code = "condition"


class SiteError(PatchkitError):
    """The site conflicts: a file is modified, locked, or cannot be read or written."""

    code = "site"
    exit_status = 5


class MeasurementError(PatchkitError):
    """A measurement says nothing of what it is asked: of another job, of another version, without a result."""

    code = "measurement"
    exit_status = 6


class InternalError(PatchkitError):
    """A fault of patchkit's own; worth a report."""

    code = "internal"
    exit_status = 70
