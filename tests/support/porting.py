"""Two releases in the cache and a patch of the first, for ``port``."""

from __future__ import annotations

from pathlib import Path

from support.bench import Bench, Run
from support.dists import keep_wheel

OLD = '''\
"""A module."""
import os


class Worker:
    def prepare(self, job):
        size = len(job)
        total = size * 2
        return total

    def run(self, job):
        self.check(job)
        size = len(job)
        result = self.work(job, size)
        self.done += 1
        return result

    def stop(self):
        self.done = 0
        return None
'''
EDIT = """\
[[edit]]
file    = "demo/core.py"
scope   = "Worker.run"
find    = '''
        size = len(job)
        result = self.work(job, size)
        self.done += 1
'''
replace = '''
        size = len(job)
        result = self.work(job, size + 1)
        self.done += 1
'''
"""


class Porter:
    """``demo`` 1.0 and 2.0 in the cache, and the patch ``fix`` of 1.0."""

    def __init__(self, bench: Bench, cache: Path) -> None:
        self.bench = bench
        self.cache = cache
        self.release("1.0", {"demo/core.py": OLD})

    def release(self, version: str, files: dict[str, str]) -> None:
        keep_wheel(self.cache, "demo", version, files)

    def patch(self, body: str = EDIT, requirement: str = "demo>=1.0,<2") -> Path:
        return self.bench.patch("fix", body, requirement=requirement)

    def __call__(self, *arguments: str, to: str = "2.0") -> Run:
        return self.bench.json("port", "fix", "--to", to, "--offline", *arguments)

    def result(self, version: str, files: dict[str, str], path: str = "demo/core.py") -> str:
        """What the patch as it is now makes of a release, by ``apply`` on an install."""
        self.bench("revert", "--all")
        self.bench.install(version, files)
        run = self.bench.json("apply", "fix")
        assert run.status == 0, run.err
        text = self.bench.read(path).decode()
        assert self.bench("revert", "fix").status == 0
        return text
