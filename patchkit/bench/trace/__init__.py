"""Profiler traces: found, read with a reader of our own, tabulated by operation and shape, checked, compared.

A report asks for three things::

    trace = read_trace(find_trace(folder, since=begun).taken.path)
    checked = check(trace, tabulate(trace), Expected(batch=512, layers=18))
    changes = compare(trace, other)
"""

from __future__ import annotations

from patchkit.bench.trace.compare import Change, change_json, compare
from patchkit.bench.trace.data import Op, Program, Row, Trace, row_json
from patchkit.bench.trace.find import Found, find_trace
from patchkit.bench.trace.names import Kernel, kernel_of
from patchkit.bench.trace.read import read_trace
from patchkit.bench.trace.table import Checked, Expected, Finding, Marked, check, tabulate

__all__ = [
    "Change",
    "Checked",
    "Expected",
    "Finding",
    "Found",
    "Kernel",
    "Marked",
    "Op",
    "Program",
    "Row",
    "Trace",
    "change_json",
    "check",
    "compare",
    "find_trace",
    "kernel_of",
    "read_trace",
    "row_json",
    "tabulate",
]
