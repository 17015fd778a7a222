"""The error for a damaged ledger: what is still known of the patches, and the commands that bring it back."""

from __future__ import annotations

import os

from patchkit.runtime.ledger import SCHEMA, TEXTS, error_of, loads, open_text, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from patchkit.errors import SiteError


def corrupt(path: str, reason: str, data: bytes = b"") -> SiteError:
    """The error for a damaged ledger, naming what its intact lines (one per patch) still tell."""
    found = []
    for line in data.decode("utf-8", "replace").split("\n"):
        try:
            value = loads(line.strip().rstrip(","))
        except (ValueError, RecursionError):
            continue
        if type(value) is dict and all(plain(value.get(name)) for name in TEXTS):
            found.append({key: value.get(key) for key in ("name", "distribution", "version", "source")})
    names = " ".join(sorted({str(item["name"]) for item in found}))
    names = names or " ".join(_logged(os.path.join(os.path.dirname(path), "log.jsonl")))
    again = f"`patchkit apply {names or 'NAME...'}` (or `patchkit sync`, where the project lists them)"
    hint = (
        f"move it away, `{_away(path)}`, and have recorded again what is there, by the kept copies "
        f"and by RECORD, which writes no file: {again}"
    )
    releases = sorted({(str(item["distribution"]), str(item["version"])) for item in found})
    if releases:
        from patchkit.runtime.reinstall import together

        release = together(os.path.dirname(os.path.dirname(path)), releases)
        hint += f". Where that refuses, the release's bytes first: {release}"
    return error_of("corrupt", f"{path}: damaged: {reason}", hint, path=path, salvaged=found)


def newer(path: str, schema: int) -> SiteError:
    """The error for a ledger of a schema that this version does not know."""
    return error_of(
        "ledger-version",
        f"{path}: written by a newer patchkit (ledger schema {schema}; this one reads up to {SCHEMA})",
        "upgrade this patchkit: pip install -U site-patchkit; if no newer one was at work here, the ledger is "
        f"damaged: `{_away(path)}`, then `patchkit apply` what was applied, or `patchkit sync`",
        path=path,
        schema=schema,
    )


def _away(path: str) -> str:
    """The command that moves a ledger out of the way."""
    from shlex import join

    return join(["mv", path, path + ".damaged"])


def _logged(path: str) -> list[str]:
    """The patches that a log last told of as applied, as far as it can be read."""
    on: dict[str, bool] = {}
    try:
        with open_text(path) as file:
            lines = file.read().split("\n")
    except OSError:
        return []
    for line in lines:
        try:
            event = loads(line)
            if event["result"] == "done":
                on.update((str(name), event["command"] != "revert") for name in event["patches"])
                on.update((str(name), False) for name in event.get("dropped", ()))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return sorted(name for name, applied in on.items() if applied and plain(name))
