from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.errors import SiteError
from patchkit.state.transaction import recover


def test_a_journal_that_is_nested_too_deeply_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / ".patchkit").mkdir()
    (tmp_path / ".patchkit" / "journal.json").write_bytes(b'{"schema":' + b"[" * 100_000)
    with pytest.raises(SiteError) as raised:
        recover(str(tmp_path))
    assert raised.value.code == "corrupt"
    assert f"delete {tmp_path}/.patchkit/journal.json" in (raised.value.hint or "")
