"""The view in memory: exactly the patches named, whatever is applied on disk; what cannot be in it is refused."""

from __future__ import annotations

import importlib.machinery
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.bench import CORE, Bench
from support.dists import make_dist
from support.overlays import EVERYTHING, FILES, Stage, added, edit
from support.sites import bare_site

from patchkit.errors import GuardError, PatchkitError, PlanError, SiteError
from patchkit.model.load import load_patch
from patchkit.ops.inmemory import View, module_name, plan_in_memory

FIRST = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
SECOND = '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n'
ON_FIRST = '[[edit]]\nfile = "demo/core.py"\nfind = "y = 2 * x"\nreplace = "y = 3 * x"\n'


def view(bench: Bench, *names: str, known_bad: bool = False) -> View:
    patches = [load_patch(str(bench.patches / f"{name}.toml")) for name in names]
    return plan_in_memory(bare_site(bench.site), patches, notice=lambda text: None, allow_known_bad=known_bad)


def texts(found: View) -> dict[str, str | None]:
    return {one.name: None if one.after is None else one.after.decode() for one in found.modules}


def first_on(text: str) -> str:
    return text.replace("y = x + x", "y = 2 * x")


def test_nothing_is_written(bench: Bench) -> None:
    bench.patch("first", FIRST)
    found = view(bench, "first")
    assert texts(found) == {"demo.core": first_on(CORE)}
    assert [(one.name, one.action, one.modules) for one in found.patches] == [("first", "live", ("demo.core",))]
    assert found.modules[0].before == CORE.encode()
    assert bench.pristine()
    assert not (bench.site / ".patchkit").exists()


@pytest.mark.parametrize("applied", [(), ("first",), ("second",), ("second", "first")])
def test_what_is_applied_on_disk_does_not_count(bench: Bench, applied: tuple[str, ...]) -> None:
    bench.patch("first", FIRST)
    bench.patch("second", SECOND)
    if applied:
        assert bench("apply", *applied).status == 0
    on_disk = bench.read("demo/core.py")
    found = view(bench, "first")
    assert texts(found) == {"demo.core": first_on(CORE)}
    assert found.modules[0].before == on_disk
    assert found.hidden == tuple(name for name in applied if name != "first")
    assert bench.read("demo/core.py") == on_disk


def test_no_patch_at_all_is_the_installers_view(bench: Bench) -> None:
    bench.patch("first", FIRST)
    bench.patch("new", added("demo/extra.py", "X = 1\n"))
    assert bench("apply", "first", "new").status == 0
    assert texts(view(bench)) == {"demo.core": CORE, "demo.extra": None}


def test_a_patch_that_builds_on_one_that_is_not_named(bench: Bench) -> None:
    bench.patch("first", FIRST)
    bench.patch("on-first", ON_FIRST)
    assert bench("apply", "first", "on-first").status == 0
    assert texts(view(bench, "first", "on-first")) == {"demo.core": CORE.replace("y = x + x", "y = 3 * x")}
    with pytest.raises(PatchkitError) as raised:
        view(bench, "on-first")
    assert raised.value.code == "anchor-missing"


def test_guards_hold_as_for_apply(bench: Bench) -> None:
    bench.patch("old", FIRST, requirement="demo<1")
    bench.patch(
        "there",
        FIRST,
        requirement="demo<1",
        target="",
    )
    bench.patch("absent", FIRST, requirement="nowhere")
    bench.patch("may-be-absent", FIRST, requirement="nowhere", target="optional = true\n")
    bench.patch("upstream", f'{FIRST}[[upstreamed]]\nversions = ">=1.0"\n', requirement="demo<1")
    bench.patch("rival", SECOND, target='conflicts = ["first"]\n')
    bench.patch("first", FIRST)
    for name, code in (("old", "version"), ("absent", "not-installed")):
        with pytest.raises(GuardError) as raised:
            view(bench, name)
        assert raised.value.code == code
    found = view(bench, "may-be-absent", "upstream")
    assert [(one.name, one.action) for one in found.patches] == [
        ("may-be-absent", "skipped"),
        ("upstream", "upstreamed"),
    ]
    assert found.modules == ()
    with pytest.raises(GuardError) as raised:
        view(bench, "first", "rival")
    assert raised.value.code == "conflict"
    assert bench("apply", "first").status == 0
    assert [one.action for one in view(bench, "rival").patches] == ["live"]  # the other is not in the view


def test_a_known_bad_patch_wants_to_be_asked_for(bench: Bench) -> None:
    path = bench.patch("bad", FIRST)
    path.write_text(path.read_text().replace('summary = "', 'tags = ["known-bad"]\nsummary = "', 1))
    with pytest.raises(GuardError) as raised:
        view(bench, "bad")
    assert raised.value.code == "known-bad"
    assert texts(view(bench, "bad", known_bad=True)) == {"demo.core": first_on(CORE)}


def test_a_hand_edit_is_in_nobodys_view(bench: Bench) -> None:
    bench.patch("first", FIRST)
    bench.write("demo/core.py", b"import os\n")
    with pytest.raises(SiteError) as raised:
        view(bench, "first")
    assert raised.value.code == "modified"


def test_data_cannot_be_in_memory(make_bench: Callable[[dict[str, str | bytes]], Bench]) -> None:
    bench = make_bench({"demo/core.py": CORE, "demo/data.txt": "one\n", "demo/not-a-name.py": "one = 1\n"})
    bench.patch("data", '[[edit]]\nfile = "demo/data.txt"\nfind = "one"\nreplace = "two"\n')
    bench.patch("odd", '[[edit]]\nfile = "demo/not-a-name.py"\nfind = "one"\nreplace = "two"\n')
    bench.patch("new", added("demo/new.txt", "x\n"))
    bench.patch("first", FIRST)
    for name, path in (("data", "demo/data.txt"), ("odd", "demo/not-a-name.py"), ("new", "demo/new.txt")):
        with pytest.raises(PlanError) as raised:
            view(bench, "first", name)
        assert raised.value.code == "not-a-module"
        assert path in raised.value.message
        assert raised.value.hint == f"write it: patchkit apply {name}"
    assert bench("apply", "data").status == 0
    assert texts(view(bench, "first", "data")) == {"demo.core": first_on(CORE)}  # on disk it is as named
    with pytest.raises(PlanError) as raised:
        view(bench, "first")
    assert raised.value.code == "not-a-module"
    assert "patchkit revert data" in (raised.value.hint or "")


def test_an_added_package_is_taken_away_with_all_its_modules(bench: Bench) -> None:
    bench.patch("new", added("demo/fresh/__init__.py", "X = 1\n") + added("demo/fresh/one.py", "Y = 1\n"))
    assert bench("apply", "new").status == 0
    assert texts(view(bench)) == {"demo.fresh": None, "demo.fresh.one": None}
    (bench.site / "demo/fresh/other.py").write_text("")
    with pytest.raises(PlanError) as raised:
        view(bench)
    assert raised.value.code == "not-a-module"
    assert "other.py" in raised.value.message


def test_a_named_patch_that_removes_the_init_of_a_package_is_told_as_such(bench: Bench) -> None:
    bench.patch("first", FIRST)
    bench.patch("bare", '[[remove]]\nfile = "demo/__init__.py"\n')
    for applied in (False, True):
        if applied:
            assert bench("apply", "bare").status == 0
        with pytest.raises(PlanError) as raised:
            view(bench, "first", "bare")
        assert raised.value.code == "not-a-module"
        assert raised.value.message.startswith("bare: it removes demo/__init__.py, ")
        assert raised.value.hint == "write it: patchkit apply bare"
        assert raised.value.details == {"patch": "bare", "path": "demo/__init__.py"}


def test_what_imports_take_instead_is_refused(bench: Bench) -> None:
    bench.patch("first", FIRST)
    beside = bench.site / f"demo/core{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    beside.write_bytes(b"")
    with pytest.raises(SiteError) as raised:
        view(bench, "first")
    assert raised.value.code == "shadowed"
    assert f"imports take demo/{beside.name} instead" in raised.value.message


def test_patches_in_several_folders_of_one_path(tmp_path: Path) -> None:
    """``apply`` writes to one folder in one call; memory has no such bound."""
    sites = [tmp_path / "one", tmp_path / "two"]
    for number, site in enumerate(sites):
        make_dist(site, f"dist{number}", "1.0", {f"mod{number}.py": "X = 'stock'\n"})
    patches = []
    for number in (0, 1):
        path = tmp_path / f"p{number}.toml"
        head = f'schema = 1\nname = "p{number}"\nsummary = "s"\n[target]\nrequirement = "dist{number}"\n'
        path.write_text(head + edit(f"mod{number}.py"))
        patches.append(load_patch(str(path)))
    found = plan_in_memory(bare_site(*sites), patches, notice=lambda text: None)
    assert texts(found) == {"mod0": "X = 'patched'\n", "mod1": "X = 'patched'\n"}
    assert found.homes == (str(sites[0]), str(sites[1]))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("six.py", "six"),
        ("a/__init__.py", "a"),
        ("a/b/c.py", "a.b.c"),
        ("a/__main__.py", "a.__main__"),
        ("a/b.pyi", None),
        ("a/b.txt", None),
        ("a-1.0.data/scripts/run.py", None),
        ("../../../bin/tool.py", None),
        ("__init__.py", "__init__"),
    ],
)
def test_module_names(path: str, name: str | None) -> None:
    assert module_name(path) == name


HIDDEN = """
import json, pkgutil
import awk
names = [name for _, name, _ in pkgutil.iter_modules(awk.__path__)]
out = [awk.WHAT, awk.core.value(), [name for name in names if name in ("extra", "fresh")]]
for name in ("awk.extra", "awk.fresh", "awk.fresh.one"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        out.append(error.name)
print(json.dumps(out))
"""


def test_a_process_sees_the_view_whatever_is_on_disk(tmp_path: Path) -> None:
    from patchkit.ops.apply import apply_site

    stage = Stage(tmp_path)
    new = added("awk/extra.py", "X = 1\n") + added("awk/fresh/__init__.py", "") + added("awk/fresh/one.py", "")
    stage.plan(everything=EVERYTHING, new=new)
    patches = [load_patch(str(tmp_path / f"{name}.toml")) for name in ("everything", "new")]
    apply_site(bare_site(stage.site), patches, notice=lambda text: None)
    assert (stage.site / "awk/core.py").read_text() == str(FILES["awk/core.py"]).replace("stock", "patched")
    assert stage.python(HIDDEN) == ["patched", "patched", ["extra", "fresh"]]
    stage.show()
    assert stage.python(HIDDEN) == ["stock", "stock", [], "awk.extra", "awk.fresh", "awk.fresh"]
    stage.show(new=new)
    assert stage.python(HIDDEN) == ["stock", "stock", ["extra", "fresh"]]
    stage.show(everything=EVERYTHING)
    assert stage.python(HIDDEN) == ["patched", "patched", [], "awk.extra", "awk.fresh", "awk.fresh"]
    assert os.path.exists(stage.site / "awk/extra.py")
