"""Copies of a site that a command is at work on, and the swap of the one for the other.

A copy is made of hard links to the *mirror*, which follows the site file by file; what patchkit writes in place (its
log, its lock) is copied. So a command that wrote into any other file in place would spoil the mirror, which is compared
with the site at the end.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

IN_PLACE = (".patchkit/log.jsonl", ".patchkit/lock")


def snapshot(root: str) -> dict[str, int | None]:
    """Everything below ``root`` by its relative path: the inode; None for directories."""
    found: dict[str, int | None] = {}

    def walk(folder: str, prefix: str) -> None:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    found[name] = None
                    walk(entry.path, name + "/")
                else:
                    found[name] = entry.inode()

    walk(root, "")
    return found


class Mirror:
    """A copy of the spine's site that follows it, and copies of that copy made of hard links."""

    def __init__(self, site: str) -> None:
        self.site, self.root, self.work = site, site + ".mirror", site + ".copy"
        self._seen: dict[str, int | None] = {}
        self._inodes: dict[str, int | None] = {}
        os.mkdir(self.root)
        os.mkdir(self.work)

    def follow(self, dirty: set[str]) -> bool:
        """Take over what changed: by its inode, or named in ``dirty``, or written in place. Whether anything did."""
        now = snapshot(self.site)
        changed = now != self._seen or any(name in now for name in dirty)
        for name in sorted(set(self._seen) - set(now), reverse=True):
            _remove(os.path.join(self.root, name), self._seen[name] is None)
        for name in sorted(now):
            if now[name] is None:
                path = os.path.join(self.root, name)
                if not os.path.isdir(path):
                    os.mkdir(path)
                if name not in self._seen or name in dirty:
                    shutil.copystat(os.path.join(self.site, name), path)
            elif self._seen.get(name, None) != now[name] or name in dirty or name in IN_PLACE:
                _remove(os.path.join(self.root, name), False)
                shutil.copy2(os.path.join(self.site, name), os.path.join(self.root, name), follow_symlinks=False)
        self._seen = now
        self._inodes = snapshot(self.root)
        return changed

    def fresh(self) -> None:
        """Make the working copy like the mirror."""
        now = snapshot(self.work)
        wanted = self._inodes
        for name in sorted(now, reverse=True):
            if name not in wanted or (now[name] is None) != (wanted[name] is None):
                _remove(os.path.join(self.work, name), now.pop(name) is None)
        for name in sorted(wanted):
            here, there = os.path.join(self.work, name), os.path.join(self.root, name)
            if wanted[name] is None:
                if name not in now:
                    os.mkdir(here)
                    shutil.copystat(there, here)
            elif name in IN_PLACE:
                _remove(here, False)
                shutil.copy2(there, here)
            elif now.get(name) != wanted[name]:
                _remove(here, False)
                os.link(there, here, follow_symlinks=False)

    def swap_in(self) -> None:
        """Put a fresh copy in the site's place."""
        self.fresh()
        os.rename(self.site, self.site + ".spine")
        os.rename(self.work, self.site)

    def swap_out(self) -> None:
        """Put the spine's site back."""
        os.rename(self.site, self.work)
        os.rename(self.site + ".spine", self.site)

    def check(self) -> None:
        """The mirror still holds what the spine's site holds: nobody wrote into a shared file."""
        for name, inode in self._seen.items():
            if inode is not None and name not in IN_PLACE:
                here, there = os.path.join(self.site, name), os.path.join(self.root, name)
                if os.path.lexists(here) and os.lstat(here).st_ino == inode:
                    own, other = os.lstat(here), os.lstat(there)
                    assert (own.st_mode, own.st_size) == (other.st_mode, other.st_size), name
                    assert Path(here).read_bytes() == Path(there).read_bytes(), f"{name}: written in place"


def _remove(path: str, directory: bool) -> None:
    with contextlib.suppress(FileNotFoundError):
        if directory:
            shutil.rmtree(path)
        else:
            os.unlink(path)
