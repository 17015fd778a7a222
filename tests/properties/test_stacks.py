"""Stacks of patches on one file, put on in any order and taken off in any order: always the bytes that must be."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support.dists import make_dist

import patchkit
from patchkit.site.environment import resolve

WORDS = [f"line_{n} = {n}" for n in range(6)]
CODECS = {"utf-8": "", "latin-1": "# -*- coding: latin-1 -*-\n", "utf-8-sig": ""}


def source(codec: str, newline: str, final: bool) -> bytes:
    text = CODECS[codec] + "note = 'é'\n" + "\n".join(WORDS) + ("\n" if final else "")
    return text.replace("\n", newline).encode(codec)


def patched(data: bytes, numbers: set[int], newline: str) -> bytes:
    """The file with the patches ``numbers`` on it, by ``bytes.replace``."""
    for number in numbers:
        old = f"line_{number} = {number}".encode()
        assert data.count(old) == 1
        data = data.replace(old, f"line_{number} = 'x{number}'{newline}extra_{number} = 0".encode())
    return data


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(sorted(CODECS)),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.permutations(range(4)),
    st.permutations(range(4)),
)
def test_any_order(codec: str, newline: str, final: bool, on: list[int], off: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        original = source(codec, newline, final)
        make_dist(root / "site", "demo", "1.0", {"demo/core.py": original})
        target = root / "site" / "demo" / "core.py"
        before = target.stat()
        for number in range(4):
            (root / f"p{number}.toml").write_text(
                f'schema = 1\nname = "p{number}"\nsummary = "s"\n[target]\nrequirement = "demo"\n'
                f'[[edit]]\nfile = "demo/core.py"\nfind = "line_{number} = {number}"\n'
                f'replace = """line_{number} = \'x{number}\'\nextra_{number} = 0"""\n',
                encoding="utf-8",
            )
        site = resolve(None, str(root / "site"), {})
        applied: set[int] = set()
        for number in on:
            patchkit.apply(str(root / f"p{number}.toml"), site=site)
            applied.add(number)
            assert target.read_bytes() == patched(original, applied, newline)
            again = patchkit.apply(str(root / f"p{number}.toml"), site=site)
            assert (again.patches[0].action, again.written) == ("unchanged", 0)
        for number in off:
            assert {s.state for s in patchkit.check(site=site, patches=[folder])} == {"applied"}
            patchkit.revert(f"p{number}", site=site)
            applied.remove(number)
            assert target.read_bytes() == patched(original, applied, newline)
        after = target.stat()
        assert (after.st_mtime_ns, after.st_mode) == (before.st_mtime_ns, before.st_mode)
        assert patchkit.check(site=site, patches=[folder]) == []
