"""What the author's commands say of files: those of a patch, those that are left out, and hunks to be looked at."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from patchkit.cli.output import Output
from patchkit.visible import visible

if TYPE_CHECKING:
    from patchkit.author.importing import Reduced


def tell_files(output: Output, paths: Mapping[str, str], added: Collection[str], removed: Collection[str]) -> None:
    """Name files, with their paths in the diff where these are others."""
    for path, called in paths.items():
        what = ["new file"] * (path in added) + ["taken away"] * (path in removed)
        what += [f"{called} in the diff"] * (path != called)
        output.line(f"  {path}" + (f"  ({', '.join(what)})" if what else ""))


def tell_hunks(output: Output, reduced: Sequence[Reduced], number: str | None) -> None:
    """What of a diff is to be looked at."""
    for one in reduced:
        output.note(str(one))
    if number is not None:
        output.note(
            f"the subject names pull request #{number}, the metadata no repository: add its address with --link"
        )


def tell_left(output: Output, originals: Sequence[str], left: Sequence[tuple[str, str]]) -> None:
    """Name the places outside of the site that pristine bytes came from, and the files that are left out."""
    names = {"uv cache": "uv's cache", "pip cache": "pip's cache", "wheel": "the released wheel"}
    outside = [names[place] for place in originals if place in names]
    if outside:
        output.note(f"what the site has not as installed comes from {' and '.join(outside)}")
    for path, reason in left:
        output.note(f"left out: {visible(path)} {reason}")


def paths_json(paths: Mapping[str, str]) -> list[dict[str, str]]:
    """Files with their paths in the diff, as JSON."""
    return [{"path": path, "diff_path": called} for path, called in paths.items()]


def left_json(left: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """What is left out, as JSON."""
    return [{"path": path, "reason": reason} for path, reason in left]
