"""A package folder that is a link into another directory of the site: what was begun there is taken back as well."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.dists import make_dist
from support.sites import bare_site

from patchkit.errors import SiteError
from patchkit.model.load import load_patch
from patchkit.ops.apply import apply_site
from patchkit.ops.catalog import open_catalog
from patchkit.ops.check import check_site
from patchkit.ops.revert import revert_site
from patchkit.ops.session import mend_all
from patchkit.ops.sync import sync_site
from patchkit.site.environment import Site
from patchkit.state import fs


class Killed(BaseException):
    """Nothing of the command runs any more."""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """One whose apply was killed behind the replacement of ``two/demo/core.py``, which ``one`` has by a link."""
    one, two = tmp_path / "one", tmp_path / "two"
    make_dist(one, "demo", "1.0", {"demo/__init__.py": "", "demo/core.py": "V = 1\n"})
    two.mkdir()
    shutil.move(one / "demo", two / "demo")
    (one / "demo").symlink_to(two / "demo")
    patch = tmp_path / "p.toml"
    target = '[target]\nrequirement = "demo"\n'
    edit = '[[edit]]\nfile = "demo/core.py"\nfind = "V = 1"\nreplace = "V = 2"\n'
    patch.write_text(f'schema = 1\nname = "p"\nsummary = "s"\n{target}{edit}')
    made = bare_site(one, two)
    killed: list[str] = []

    def hook(operation: str, path: str, when: str) -> None:
        if killed or (operation == "replace" and path.endswith("core.py") and when == "after"):
            killed.append(path)
            raise Killed

    with pytest.raises(Killed), fs.observed(hook):
        apply_site(made, [load_patch(str(patch))], notice=print)
    assert (two / "demo/core.py").read_text() == "V = 2\n"
    return made


CALLS: list[Callable[[Site, list[str]], object]] = [
    lambda site, told: told.extend(check_site(site).notices),
    lambda site, told: revert_site(site, ["p"], notice=told.append),
    lambda site, told: sync_site(site, open_catalog(), notice=told.append),
    lambda site, told: mend_all(site, told.append),  # as list, show, diff and log do
]


@pytest.mark.parametrize("call", CALLS, ids=["check", "revert", "sync", "list"])
def test_whichever_command_comes_next_takes_it_back(
    tmp_path: Path, site: Site, call: Callable[[Site, list[str]], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    call(site, told)
    assert told == ["an interrupted `apply` was taken back (1 file)"]
    assert (tmp_path / "two/demo/core.py").read_text() == "V = 1\n"
    assert not (tmp_path / "one/.patchkit/journal.json").exists()


def test_not_where_the_link_leads_out_of_the_site(tmp_path: Path, site: Site) -> None:
    away = tmp_path / "away"
    shutil.move(tmp_path / "two/demo", away)
    (tmp_path / "two/demo").symlink_to(away)
    [key] = [file["key"] for file in json.loads((tmp_path / "one/.patchkit/journal.json").read_text())["files"]]
    assert os.path.realpath(tmp_path / "one" / key) == str(away / "core.py")
    with pytest.raises(SiteError) as raised:
        mend_all(site, print)
    assert raised.value.code == "leads-out"
    assert (away / "core.py").read_text() == "V = 2\n"
