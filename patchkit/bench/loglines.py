"""What an engine's log says of itself, read line by line; pure.

The texts are those of vLLM and tpu-inference 0.23.0 to 0.32.0, and of jax 0.10 and 0.11 with ``JAX_LOG_COMPILES=1``.
Nothing of the log is kept but what was found, so a log of any length costs no memory.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO

from patchkit.bench.observation import Measured
from patchkit.model.recipe import METRICS, LogLine
from patchkit.tuples import NamedTuple

#: Bytes of one line that are looked at; longer ones, a configuration printed on one line, are read up to here.
LONGEST = 65536
#: What tpu-inference raises under ``VLLM_XLA_CHECK_RECOMPILATION=1``.
FORBIDDEN = "compilation occurred but was forbidden"
#: Lines that tell which engine it is, at most this many.
_MOST_VERSIONS = 16

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
#: ``(EngineCore pid=7) INFO 12-01 01:23:07 [core.py:114] ``, of which the engine prints any part or none.
_PREFIX = re.compile(
    r"(?:\([\w.-]+ pid=\d+\) )?(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\s+\d\d-\d\d \d\d:\d\d:\d\d "
    r"\[[^\]\s]*\] (?:\[[^\]]*\] )?)?"
)
_VERSION = re.compile(r"Initializing a V1 LLM engine \(v[^)]*\)|vLLM API server version \S+")
_MEMORY = re.compile(r"Memory statistics \|.*?\btotal_hbm_used_gb=([\d.]+)GiB")
#: 0.32.0 says both on one line, earlier ones on two.
_CACHE = re.compile(r"KV cache size: ([\d,]+) tokens")
_CONCURRENCY = re.compile(r"Maximum concurrency for [\d,]+ tokens per request: ([\d.,]+)x")
_INIT = re.compile(r"\binit engine \(.*?\) took ([\d.]+) s")
_HITS = re.compile(r"(?<!External )Prefix cache hit rate: ([\d.]+)%")
_GENERATION = re.compile(r"Avg generation throughput: ([\d.]+) tokens/s")
_DRAFTS = re.compile(r"SpecDecoding metrics: .*?Accepted: (\d+) tokens, Drafted: (\d+) tokens")
#: One for each program that jax hands to its compiler, found in its cache or not.
_COMPILED = re.compile(r"Finished XLA compilation of (.+?) in [\d.e+-]+ sec")
_COMPILING = re.compile(r"Compiling (.+?) with global shapes")
#: What each of the patterns above needs, for a look at a line that is cheaper than ten searches.
_WORDS = re.compile(
    r"Finished XLA|Initializing a V1|API server version|Memory statistics|KV cache|Maximum concurrency|init engine|"
    r"Prefix cache|generation throughput|SpecDecoding|was forbidden|with global shapes"
)


class LogFacts(NamedTuple):
    """What a log tells.

    ``metrics`` are those of :data:`patchkit.model.recipe.METRICS` (``model_memory``, ``kv_cache_tokens``,
    ``max_concurrency``, ``init``, ``acceptance_rate``) that it tells. ``compilations`` counts by function what jax
    compiled after the engine was built; None where the log has no line of a compilation at all, since then nobody
    counted. ``built``: the engine said that it is. ``hit_rate`` is the last one that it told (0 to 1), of its latest
    1,000 requests. ``generation`` are the non-zero ``Avg generation throughput``, in tokens/s, in order; ``accepted``
    and ``drafted`` tokens of speculative decoding are sums over the log. ``forbidden``: a compilation was caught, of
    ``forbidden_program`` by jax's own lines.
    """

    version_lines: tuple[str, ...] = ()
    metrics: Mapping[str, Measured] = {}
    compilations: Mapping[str, int] | None = None
    built: bool = False
    hit_rate: float | None = None
    generation: tuple[float, ...] = ()
    accepted: int | None = None
    drafted: int | None = None
    forbidden: bool = False
    found_lines: Mapping[str, int] = {}
    forbidden_program: str | None = None


def lines_of(file: IO[bytes], begin: int = 0, end: int | None = None) -> Iterator[str]:
    """The lines of a log from byte ``begin`` to byte ``end``, as text, one in memory at a time.

    A progress bar's returns (``\\r``) end a line as well; colours are taken off; what is no UTF-8 is replaced. A line
    longer than :data:`LONGEST` comes in parts.
    """
    file.seek(begin)
    left = None if end is None else end - begin
    while left is None or left > 0:
        data = file.readline(LONGEST if left is None else min(LONGEST, left))
        if not data:
            return
        if left is not None:
            left -= len(data)
        yield from plain(data.decode("utf-8", "replace"))


def plain(line: str) -> Iterator[str]:
    """A line without its end and its colours; several, where returns stand in it."""
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    line = line.rstrip("\r\n")
    if "\r" in line:
        yield from (part for part in line.split("\r") if part)
    else:
        yield line


def read_log(lines: Iterable[str], evidence: Sequence[LogLine] = ()) -> LogFacts:
    """What the lines of one engine's log say, in one pass.

    Args:
        lines: As of :func:`lines_of`; ends of lines, colours and returns may be in them.
        evidence: Texts to count: the result's ``found_lines`` has the number of lines with each, 0 included.
    """
    reader = _Reader(evidence)
    for given in lines:
        if "\x1b" in given or "\r" in given or given.endswith("\n"):
            for line in plain(given):
                reader.read(line)
        else:
            reader.read(given)
    return reader.facts()


def compilations(lines: Iterable[str]) -> dict[str, int]:
    """How often each function was compiled, by jax's own lines; for a part of a log, such as one phase."""
    counts: dict[str, int] = {}
    for line in lines:
        if "Finished XLA" in line and (match := _COMPILED.search(line)) is not None:
            counts[match[1]] = counts.get(match[1], 0) + 1
    return dict(sorted(counts.items()))


class _Reader:
    def __init__(self, evidence: Sequence[LogLine]) -> None:
        self._found = {line.text: 0 for line in evidence}
        self._versions: dict[str, None] = {}
        self._values: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._counted = self._built = self._forbidden = False
        self._compiling: str | None = None
        self._caught: str | None = None
        self._hits: float | None = None
        self._generation: list[float] = []
        self._drafts: list[int] | None = None

    def read(self, line: str) -> None:
        for text in self._found:
            if text in line:
                self._found[text] += 1
        if _WORDS.search(line) is None:
            return
        if (match := _COMPILED.search(line)) is not None:
            self._counted = True
            if self._built:
                self._counts[match[1]] = self._counts.get(match[1], 0) + 1
            return
        if (match := _VERSION.search(line)) is not None and len(self._versions) < _MOST_VERSIONS:
            self._versions[match[0]] = None
        for name, pattern in (
            ("model_memory", _MEMORY),
            ("kv_cache_tokens", _CACHE),
            ("max_concurrency", _CONCURRENCY),
        ):
            if (match := pattern.search(line)) is not None and (value := _number(match[1])) is not None:
                self._values[name] = value
        if (match := _INIT.search(line)) is not None and (value := _number(match[1])) is not None:
            self._values["init"] = value
            self._built = True
        if (match := _HITS.search(line)) is not None and (value := _number(match[1])) is not None:
            self._hits = value / 100
        if (match := _GENERATION.search(line)) is not None and (value := _number(match[1])):
            self._generation.append(value)
        if (match := _DRAFTS.search(line)) is not None:
            before = self._drafts or [0, 0]
            self._drafts = [before[0] + int(match[1]), before[1] + int(match[2])]
        if (match := _COMPILING.search(line)) is not None:
            self._compiling = match[1]
        if FORBIDDEN in line:
            self._forbidden, self._caught = True, self._compiling

    def facts(self) -> LogFacts:
        accepted, drafted = self._drafts or (None, None)
        if accepted is not None and drafted:
            self._values["acceptance_rate"] = accepted / drafted
        return LogFacts(
            version_lines=tuple(self._versions),
            metrics={name: Measured(value, METRICS[name][0]) for name, value in self._values.items()},
            compilations=dict(sorted(self._counts.items())) if self._counted else None,
            built=self._built,
            hit_rate=self._hits,
            generation=tuple(self._generation),
            accepted=accepted,
            drafted=drafted,
            forbidden=self._forbidden,
            found_lines=self._found,
            forbidden_program=self._caught,
        )


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "").rstrip("."))
    except ValueError:
        return None


def last_words(lines: Iterable[str], most: int = 3) -> str:
    """Why a program ended, by the end of its log: its last exception, else the last ``most`` lines with something."""
    blamed, kept = _ending(lines, most)
    return (blamed or "\n".join(kept))[:_MOST_WORDS]


def exception_of(lines: Iterable[str]) -> str | None:
    """The last exception that a log tells, and not the one that only tells of another; None where there is none."""
    blamed, _ = _ending(lines, 1)
    return None if blamed is None else blamed[:_MOST_WORDS]


def _ending(lines: Iterable[str], most: int) -> tuple[str | None, Iterable[str]]:
    kept: deque[str] = deque(maxlen=most)
    blamed: str | None = None
    for bare in _bare(lines):
        kept.append(bare)
        if _EXCEPTION.match(bare) and (blamed is None or _SECONDHAND.search(bare) is None):
            blamed = bare
    return blamed, kept


def _bare(lines: Iterable[str]) -> Iterator[str]:
    for given in lines:
        for line in plain(given):
            bare = line[_prefix_end(line) :].strip()
            if bare:
                yield bare


_MOST_WORDS = 500
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt): \S")
#: What one process of vLLM says of another one's exception.
_SECONDHAND = re.compile(r"EngineDeadError|[Rr]oot cause|EngineGenerateError")


def _prefix_end(line: str) -> int:
    match = _PREFIX.match(line)
    return match.end() if match else 0
