"""What the tests of drift have in common: patches of ``demo``, and asking ``check`` for one."""

from __future__ import annotations

from support.bench import CORE, Bench

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
UTIL_X = '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1\\n"\nreplace = "X = 10\\n"\n'
NEEDLESS = DOUBLE + '[[upstreamed]]\nversions = ">=2"\n'
STOP_AT_2 = '[[edit]]\nfile = "demo/core.py"\nversions = ">=2"\nfind = "result = None"\nreplace = "result = 0"\n'
DOUBLED = CORE.replace("x + x", "2 * x").encode()


def state(bench: Bench, name: str = "p") -> tuple[int, str, str | None]:
    run = bench.json("check", name)
    [patch] = run.json["patches"]
    return run.status, patch["state"], patch["reason"]
