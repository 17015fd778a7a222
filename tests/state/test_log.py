from __future__ import annotations

import os
from pathlib import Path

from patchkit.state import log


def test_events_come_back_in_order(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert log.read_log(home) == []
    (tmp_path / ".patchkit").mkdir()
    event = log.stamped({"command": "apply", "patches": ["a"], "result": "done"}, files=2, tx="t1")
    log.append(home, event)
    log.append(home, {**event, "command": "revert"})
    assert [item["command"] for item in log.read_log(home)] == ["apply", "revert"]
    first = log.read_log(home)[0]
    assert {"time", "command", "patches", "files", "result", "user", "pid", "tx"} == set(first)
    assert first["files"] == 2
    assert first["pid"] == os.getpid()
    assert len(first["time"]) == len("2026-11-30T12:00:00Z")


def test_a_torn_line_spoils_only_itself(tmp_path: Path) -> None:
    home = str(tmp_path)
    (tmp_path / ".patchkit").mkdir()
    log.append(home, {"n": 1})
    path = tmp_path / ".patchkit" / "log.jsonl"
    path.write_bytes(path.read_bytes() + b'{"n": 2, "to')
    assert log.read_log(home) == [{"n": 1}]
    log.append(home, {"n": 3})
    assert log.read_log(home) == [{"n": 1}, {"n": 3}]
    path.write_bytes(b"\xff\xfe\n" + path.read_bytes())
    assert log.read_log(home) == [{"n": 1}, {"n": 3}]
