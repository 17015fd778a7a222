"""Sites made by hand, for tests."""

from __future__ import annotations

from pathlib import Path

from patchkit.site.environment import Site


def bare_site(*directories: Path, python_version: tuple[int, int] | None = None) -> Site:
    """A site without an interpreter; the first directory is its home."""
    return Site(
        home=str(directories[0]),
        paths=[str(directory) for directory in directories],
        interpreter=None,
        python_version=python_version,
        label="test site",
    )
