"""The life of a site: whatever is applied, reverted, edited, reinstalled or killed, the files are what they must be.

``world.py`` says what that is, line by line, without patchkit. The commands run for real, on a real folder.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from properties.effort import effort
from properties.world import CODECS, CORE, FILES, KINDS, MTIME, NEWLINES, NOTES, UTIL, WORDS, Rule, Shape, Spec, World
from state.sites import Crash, Stop

import patchkit
from patchkit.errors import PatchkitError, PlanError, SiteError
from patchkit.ops.catalog import open_catalog
from patchkit.ops.sync import sync_site
from patchkit.site.environment import resolve
from patchkit.state import fs

tally: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here stages a power cut."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, Shape]:
    codec = draw(st.sampled_from(sorted(CODECS)))
    newline = st.sampled_from(NEWLINES)
    both = {path: Shape(codec, draw(newline), draw(st.booleans())) for path in (CORE, UTIL)}
    return {**both, NOTES: Shape("utf-8", draw(newline), draw(st.booleans()))}


@st.composite
def specs(draw: st.DrawFn) -> list[Spec]:
    """One to five patches, each with cells of its own, so that none needs another; and one that needs the first."""
    out, cell = [], 0
    for number in range(draw(st.integers(1, 5))):
        rules = []
        for _ in range(draw(st.integers(0 if number else 1, 3))):
            kind = "text" if cell == 0 else draw(st.sampled_from(KINDS))
            files = (CORE,) if cell == 0 else draw(st.sampled_from([(CORE,), (UTIL,), (CORE, UTIL)]))
            rules.append(Rule(kind, cell, files))
            cell += 1
        extras = [draw(st.integers(0, 2)) == 0 for _ in range(2)]
        probe, notes = number == 1 and draw(st.booleans()), number == 2 and draw(st.booleans())
        add = extras[1] or not (rules or extras[0] or probe or notes)
        out.append(Spec(f"p{number}", tuple(rules), extras[0], add, probe, notes, take=draw(st.integers(0, 2)) == 0))
    if draw(st.booleans()):
        out.append(Spec("top", (), on_top=True))
    return out


class Life(RuleBasedStateMachine):
    """Commands in any order, with the world as the model."""

    world: World

    @initialize(shapes=shapes(), specs=specs(), at_first=st.booleans())
    def begin(self, shapes: dict[str, Shape], specs: list[Spec], at_first: bool) -> None:
        note(f"{shapes}\n{specs}")
        self.world = World(shapes, specs)
        self.site = resolve(None, str(self.world.home), {})
        for spec in specs:
            if spec.probe:
                self.learn_probe(spec)
        if at_first:
            self.apply([spec.name for spec in specs])

    def learn_probe(self, spec: Spec) -> None:
        """The lines that the probe makes of its own, from a plan of it alone."""
        world = self.world
        path = world.root / "only.toml"
        path.write_text(
            world.document(spec._replace(rules=(), imports=False, add=False, take=False), 0).replace(
                f'"{spec.name}"', '"only"'
            )
        )
        ((after,),) = [
            [file.after for file in patch.files] for patch in patchkit.plan(str(path), site=self.site).patches
        ]
        shape = world.shapes[UTIL]
        lines = after.decode(shape.codec).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        lines = [line.replace("only", spec.name) for line in lines]
        first, last = lines.index('"""Doc."""') + 1, lines.index("import os")
        call = lines.index("def run():") + 1
        world.probe_lines = (lines[first:last], [lines[call]])

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.revert_all()
            self.revert_all_by_force()
            self.whole()
            self.pristine_again()
            self.world.close()

    # -- commands --------------------------------------------------------------------------------------------------

    def run(self, command: Callable[[], Any], *, refused: bool | None, then: Callable[[], None]) -> None:
        """Run a command that must be refused, or must have the effect ``then`` on the model; None: either."""
        before = self.world.digest()
        try:
            command()
        except PatchkitError as error:
            if refused is False or not isinstance(error, PlanError | SiteError):
                raise
            tally[f"refused: {error.code}"] += 1
            if self.world.digest() != before:
                raise AssertionError("a refused command changed something") from error
            return
        assert not refused, "should have been refused"
        then()

    def commands(self, name: str, names: list[str]) -> tuple[Callable[[], Any], bool | None, Callable[[], None]]:
        """A command, whether it must be refused, and what it does to the model."""
        world = self.world
        if name == "apply":
            paths = [str(world.folder / f"{one}.toml") for one in names]
            fresh = [one for one in names if self.stale(one)]
            dirty = any(world.hand[file] for one in fresh for file in world.specs[one].files)
            homeless = "top" in names and not {"p0"} & {*names, *world.on}
            return (
                (lambda: patchkit.apply(*paths, site=self.site)),
                dirty or homeless,
                lambda: self.applied(names, fresh),
            )
        if name == "revert":
            needed = "p0" in names and "p0" in world.on and "top" in world.on and "top" not in names
            refused = needed or (None if self.vague() else False)
            return lambda: patchkit.revert(*names, site=self.site), refused, lambda: self.reverted(names)
        wanted = lambda text: None  # noqa: E731
        dirty = any(world.hand[file] for one in world.on for file in world.specs[one].files)
        return (lambda: sync_site(self.site, open_catalog([str(world.folder)]), notice=wanted)), dirty, self.synced

    def stale(self, name: str) -> bool:
        """Whether `apply` has anything to do for a patch."""
        world = self.world
        dirty = any(world.hand[file] for file in world.specs[name].files)
        return world.on.get(name) != world.variants[name] or dirty or name in world.lost

    def applied(self, names: list[str], fresh: list[str]) -> None:
        world = self.world
        world.lost -= world.together(set(fresh))
        for name in names:
            world.on[name] = world.variants[name]
        self.by_after()

    def by_after(self) -> None:
        world = self.world
        if "top" in world.on and list(world.on).index("top") < list(world.on).index("p0"):
            world.on["top"] = world.on.pop("top")

    def reverted(self, names: list[str]) -> None:
        self.world.lost -= self.world.together({name for name in names if name in self.world.on})
        for name in names:
            self.world.on.pop(name, None)

    def synced(self) -> None:
        """Without a project's list, what the ledger has is wanted: as it was applied, and as its file is now."""
        world = self.world
        for name in world.on:
            world.on[name] = world.variants[name]
        world.lost = set()

    def unclear(self) -> bool:
        """Whether a file that a reinstall took patches from was edited since: of this there is no model."""
        return any(self.world.hand[file] for name in self.world.lost for file in self.world.specs[name].files)

    def vague(self) -> bool:
        """Whether a line that a patch deleted has lost both of its neighbours to hand edits: then its place is gone."""
        cells = ((rule, file) for name in self.world.on for rule in self.world.specs[name].rules for file in rule.files)
        return any(
            rule.kind == "delete"
            and f"filler_{rule.cell}" in self.world.hand[file]
            and (f"filler_{rule.cell - 1}" in self.world.hand[file] or not rule.cell)
            for rule, file in cells
        )

    # -- rules -----------------------------------------------------------------------------------------------------

    names = st.lists(st.sampled_from(["p0", "p1", "p2", "p3", "p4", "top"]), min_size=1, max_size=3, unique=True)

    def known(self, names: list[str]) -> list[str]:
        return [name for name in names if name in self.world.specs] or ["p0"]

    @precondition(lambda self: not self.unclear())
    @rule(names=names)
    def apply(self, names: list[str]) -> None:
        command, refused, then = self.commands("apply", self.known(names))
        self.run(command, refused=refused, then=then)
        tally["apply"] += 1

    @precondition(lambda self: not self.unclear())
    @rule(names=names)
    def revert(self, names: list[str]) -> None:
        command, refused, then = self.commands("revert", self.known(names))
        self.run(command, refused=refused, then=then)
        tally["revert"] += 1

    @rule()
    def revert_all(self) -> None:
        """Where a reinstall took the patches away, hand edits made since can not always be told from that."""
        refused = None if self.unclear() or self.vague() else False
        self.run(lambda: patchkit.revert(site=self.site, everything=True), refused=refused, then=self.nothing_on)
        tally["revert all"] += 1

    def nothing_on(self) -> None:
        self.world.on, self.world.lost = {}, set()

    @rule()
    def revert_all_by_force(self) -> None:
        """Hand edits go where they cannot be kept, file by file, and a copy of each such file is kept."""
        world = self.world
        names = world.on if self.vague() else world.lost
        held = {file: world.found()[file] for name in names for file in world.specs[name].files}
        patchkit.revert(site=self.site, everything=True, force=True)
        self.nothing_on()
        copies = [path.read_bytes() for path in (world.home / ".patchkit").glob("discarded-*")]
        for file, data in held.items():
            if world.hand[file] and world.found()[file] != world.expected()[file]:
                world.hand[file] = {}
                assert data in copies
                tally["discarded by force"] += 1

    @rule()
    def sync(self) -> None:
        command, refused, then = self.commands("sync", [])
        self.run(command, refused=refused, then=then)
        tally["sync"] += 1

    @rule(number=st.integers(0, 4), variant=st.integers(0, len(WORDS) - 1))
    def edit_a_patch_file(self, number: int, variant: int) -> None:
        names = list(self.world.specs)
        name = names[number % len(names)]
        self.world.variants[name] = variant
        self.world.write_patch(name)

    @rule(path=st.sampled_from(FILES), number=st.integers(0, 9), text=st.sampled_from(["hand_{} = 1", "# hand {}"]))
    def edit_by_hand(self, path: str, number: int, text: str) -> None:
        """Every edited line is another, so that it can be told which line of the file it was."""
        number %= self.world.cells
        self.world.edit_by_hand(path, number, text.format(number))
        tally["hand edit"] += 1

    @rule(version=st.sampled_from(["1.0", "1.0", "2.0"]))
    def reinstall(self, version: str) -> None:
        if version == self.world.version:
            self.world.install(version)
            tally["reinstall"] += 1

    @rule(version=st.sampled_from(["1.0", "2.0"]))
    def another_version(self, version: str) -> None:
        """Another release, with nothing applied: an upgrade over patches has tests of its own."""
        if not self.world.on:
            self.world.install(version)

    @precondition(lambda self: not self.unclear())
    @rule(
        kind=st.sampled_from(["apply", "revert", "sync"]),
        names=names,
        at=st.integers(1, 90),
        when=st.sampled_from(["before", "after"]),
    )
    def kill(self, kind: str, names: list[str], at: int, when: str) -> None:
        """The process dies at a step; the next command finishes what it left, or takes it back."""
        world = self.world
        command, refused, then = self.commands(kind, self.known(names))
        old = world.expected()
        try:
            with fs.observed(Stop(at, when)):
                self.run(command, refused=refused, then=then)
            return
        except Crash:
            tally["killed"] += 1
        assert world.expected() == old
        patchkit.check(site=self.site)
        if world.found() != old:
            then()
        else:  # the same bytes, in the ledger or not
            recorded = {state.name for state in patchkit.check(site=self.site)}
            if recorded != set(world.on):
                then()
                assert recorded == set(world.on)
        self.whole()

    @rule()
    def check(self) -> None:
        world = self.world
        states = {state.name: state for state in patchkit.check(site=self.site)}
        assert set(states) == set(world.on)
        for name, state in states.items():
            spec = world.specs[name]
            dirty = any(world.hand[file] for file in spec.files)
            edited = world.on[name] != world.variants[name]
            there = not dirty and name not in world.lost
            assert (state.state == "applied") == (there and not edited), (name, state)
            if there and edited:
                assert state.state == "stale", (name, state)
            if name in world.lost and not dirty and not spec.add:
                assert state.state == "lost", (name, state)

    # -- what holds after every step -------------------------------------------------------------------------------

    @invariant()
    def whole(self) -> None:
        if not hasattr(self, "world"):
            return
        found, expected = self.world.found(), self.world.expected()
        assert set(found) == set(expected)
        for path, data in expected.items():
            assert found[path] == data, f"{path}:\n{found[path]!r}\n{data!r}"

    @invariant()
    def pristine_again(self) -> None:
        world = getattr(self, "world", None)
        if world is None or world.on:
            return
        for number, path in enumerate(FILES):
            if not world.hand[path]:
                stat = (world.home / path).stat()
                assert stat.st_mtime_ns == MTIME + number, path
                assert path != CORE or stat.st_mode & 0o777 == 0o640
        for name in world.specs:
            stat = (world.home / world.spare(name)).stat()
            assert (stat.st_mtime_ns, stat.st_mode & 0o777) == (MTIME, 0o604)
        if not any(world.hand.values()):
            assert world.record_holds()


TestLife = Life.TestCase
TestLife.settings = effort(25, stateful_step_count=20)
