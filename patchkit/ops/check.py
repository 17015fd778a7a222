"""Drift: what the ledgers and the project want, against what the site holds.

The hot path: as long as nothing drifted, no patch file is parsed and no source file is read; a file whose size,
mtime and inode are as recorded is taken as ours. Only what differs is looked into (:mod:`patchkit.ops.drift`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from patchkit.errors import SiteError
from patchkit.runtime.ledger import check_files, infos_of, installed, lost, missing_blobs, read, state_path
from patchkit.site.environment import EXPERIMENT, ledger_homes
from patchkit.site.shadow import Glance
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from typing import Literal, TypeVar

    from patchkit.ops.catalog import Catalog
    from patchkit.ops.drift import Drift
    from patchkit.ops.experiment import Mark
    from patchkit.site.environment import Site
    from patchkit.state.journal import Journal
    from patchkit.state.lock import Holder

    _T = TypeVar("_T")
    Marks = dict[str, list[tuple[int, int, int] | None]]
    FileWord = Literal["applied", "pristine", "modified", "missing", "unreadable"]
    StateWord = Literal[
        "applied",
        "absent",
        "lost",
        "stale",
        "modified",
        "partial",
        "upstreamed",
        "refused",
        "uninstalled",
        "corrupt",
    ]

#: Looks at a site that other commands keep changing, before they are kept from it for a moment.
LOOKS = 8
#: Seconds to wait for that moment, and those that who only looks waits for a command that is writing.
QUIET_SECONDS = 20.0
GLANCE_SECONDS = 5.0

#: The states in which nothing needs doing.
CLEAN = frozenset({"applied", "upstreamed"})


class FileDrift(NamedTuple):
    """One file and its state."""

    path: str
    state: FileWord


class PatchState(NamedTuple):
    """One patch's state, by the words of DESIGN section 4; ``reason`` says what was found and what to do.

    ``site`` is the directory whose ledger has it, or would.
    """

    name: str
    state: StateWord
    distribution: str | None
    version: str | None
    applied_version: str | None
    files: tuple[FileDrift, ...]
    reason: str | None
    optional: bool = False
    site: str = ""

    @property
    def clean(self) -> bool:
        """Whether nothing needs doing."""
        return self.state in CLEAN or (self.optional and self.state == "uninstalled")


class Report(NamedTuple):
    """What ``check`` found: the states, notices of interrupted commands, and the error of each damaged ledger.

    ``left`` has an error for each experiment that was ended before it could put the site back.
    """

    states: list[PatchState]
    notices: list[str]
    damage: list[SiteError]
    left: list[SiteError]

    @property
    def clean(self) -> bool:
        """Whether nothing needs doing."""
        return not self.damage and not self.left and all(state.clean for state in self.states)


class _Home:
    """One directory of the site's path with its ledger."""

    def __init__(self, path: str, ledger: dict[str, Any] | None) -> None:
        self.path = path
        self.patches: list[dict[str, Any]] = [] if ledger is None else ledger["patches"]
        self.upstreamed: list[dict[str, Any]] = [] if ledger is None else ledger["upstreamed"]
        self.files: Mapping[str, FileWord] = {}
        self.linked: set[str] = set()
        self.added: frozenset[str] = frozenset()
        self.taken: frozenset[str] = frozenset()
        self.changing = False
        self.lost: Mapping[str, list[str]] = {}
        if self.patches and ledger is not None:
            self.files = cast("dict[str, FileWord]", check_files(path, ledger, linked=self.linked))
            self.added = frozenset(key for key, entry in ledger["files"].items() if entry["pristine"] is None)
            self.taken = frozenset(key for key, entry in ledger["files"].items() if entry["after"] is None)
            self.lost = lost(ledger, missing_blobs(path, ledger))


def check_site(
    site: Site,
    names: Sequence[str] = (),
    catalog: Catalog | None = None,
    *,
    notice: Callable[[str], None] | None = None,
) -> Report:
    """The state of every patch in any ledger of the site's path, and of every one that the project wants.

    What an interrupted command left is taken back first, where that can be.

    Args:
        site: The site.
        names: Only these (or paths of patch files); the others' states are not worked out.
        catalog: Patch files and the project's list; None: only the ledgers count.
        notice: Told of a command that is waited for, where commands come and go all the time.

    Raises:
        SiteError: A ledger or a journal cannot be read, or a newer patchkit wrote it; as :func:`steady`.
        UsageError: ``unknown-patch``.
    """
    mended: list[str] = []  # by whichever look: it is told of once
    report = steady(site, lambda: _look(site, names, catalog, mended), notice=notice)
    report.notices[:0] = mended
    return report


def steady(
    site: Site, look: Callable[[], _T], *, wait: float | None = None, notice: Callable[[str], None] | None = None
) -> _T:
    """What ``look`` finds at one moment, though it reads many files: no command began or ended meanwhile.

    Where others come and go faster than one can look, they are kept out for one look; by who may not write there with
    the lock that a reader can have.

    Args:
        site: The site.
        look: Reads it; called again where it was not left alone.
        wait: Seconds to wait for a command that is writing now, unless ``$PATCHKIT_WAIT`` says how many; None: such a
            command is ``look``'s to know of, by its journal.
        notice: Told of a command that is waited for.

    Raises:
        SiteError: ``locked``: a command was writing all the time, or many one after another.
        UsageError: ``$PATCHKIT_WAIT`` is no number of seconds.
        Exception: As ``look`` does, when nothing changed meanwhile.
    """
    for _ in range(LOOKS):
        before = marks(site) if wait is None else quiet(site, wait, notice)
        try:
            found = look()
        except Exception:
            if marks(site) == before:
                raise
        else:
            if marks(site) == before:
                return found
    from contextlib import ExitStack

    from patchkit.ops.session import waiting_text
    from patchkit.state.lock import Holder, in_order, lock, locked_by, patience, shared

    def tell(by: Holder) -> None:
        if notice is not None:
            notice(waiting_text(by))

    seconds = patience(QUIET_SECONDS)
    with ExitStack() as stack:
        for path in in_order(ledger_homes(site)):
            try:
                stack.enter_context(lock(path, timeout=seconds, on_wait=tell))
            except SiteError as error:
                if error.code != "locked":
                    stack.enter_context(shared(path, timeout=seconds))
        for _ in range(2):  # the first look may have taken back what an interrupted command left
            before = marks(site) if wait is None else quiet(site, wait, notice)
            try:
                found = look()
            except Exception:
                if marks(site) == before:
                    raise
                continue
            if marks(site) == before:
                return found
    raise locked_by(state_path(site.home, "lock"), Holder(None, ""), seconds, seconds)


def quiet(site: Site, wait: float, notice: Callable[[str], None] | None = None) -> Marks:
    """The marks of the site at a moment at which no command is writing, which is waited for.

    What an interrupted command left is not waited for.

    Args:
        site: The site.
        wait: Seconds, unless ``$PATCHKIT_WAIT`` says how many.
        notice: Told of the command that is waited for.

    Raises:
        SiteError: ``locked``: it was writing all the time.
        UsageError: ``$PATCHKIT_WAIT`` is no number of seconds.
    """
    began: float | None = None
    while True:
        found = marks(site)
        homes = [home for home, (_, _, journal) in found.items() if journal is not None]
        if not homes:
            return found
        import time

        from patchkit.ops.session import running_text, waiting_text
        from patchkit.state.lock import POLL_SECONDS, locked_by, patience, probe

        for home in homes:
            by = probe(home)
            if by is not None:
                break
        else:
            return found
        now = time.monotonic()
        if began is None:
            began = now
            if notice is not None:
                notice(waiting_text(by) if wait > GLANCE_SECONDS else running_text(by))
        seconds = patience(wait)
        if now - began >= seconds:
            raise locked_by(state_path(home, "lock"), by, now - began, seconds)
        time.sleep(POLL_SECONDS / 5)


def marks(site: Site) -> Marks:
    """What a command cannot leave as it is, by directory: the ledger's folder, the ledger and the journal."""
    homes: Marks = {}
    for home in ledger_homes(site):
        found: list[tuple[int, int, int] | None] = []
        for path in (state_path(home), state_path(home, "ledger.json"), state_path(home, "journal.json")):
            try:
                now = os.stat(path)
            except OSError:
                found.append(None)
            else:
                found.append((now.st_ino, now.st_mtime_ns, now.st_size))
        homes[home] = found
    return homes


def _look(site: Site, names: Sequence[str], catalog: Catalog | None, mended: list[str]) -> Report:
    """One look at the site; what it mends is added to ``mended``."""
    from patchkit.ops.drift import Drift

    report = Report([], [], [], [])
    drift = Drift(site, catalog)
    recorded: dict[str, list[Callable[[], PatchState]]] = {}
    upstreamed: dict[str, list[Callable[[], PatchState]]] = {}
    homes: list[_Home] = []
    marks: list[Mark] = []
    for path in ledger_homes(site):
        if os.path.lexists(state_path(path, EXPERIMENT)):
            from patchkit.ops.experiment import seen

            marks += seen(path, report)
        states, home = _read_home(site, path, report, mended)
        for state in states:
            recorded.setdefault(state.name, []).append(partial(_as_is, state))
        if home is not None:
            homes.append(home)
    drift.changing = {home.path for home in homes if home.changing}
    installs = _Installs(site, homes)
    for home in homes:
        for patch in home.patches:
            recorded.setdefault(str(patch["name"]), []).append(partial(_applied_state, home, patch, installs, drift))
        for entry in home.upstreamed:
            upstreamed.setdefault(str(entry["name"]), []).append(partial(drift.upstreamed_entry, home.path, entry))
    project = catalog.project if catalog is not None else None
    wanted = project.wanted if project is not None else ()
    listed = project is not None and project.listed
    # Without a list, what the ledgers hold is what is wanted: also what a release made needless.
    order = list(dict.fromkeys([*recorded, *(wanted if listed else upstreamed)]))
    if names:
        known = {*recorded, *upstreamed, *wanted}
        chosen = [name if name in known else drift.name_of(name) for name in names]
        order = list(dict.fromkeys([name for name in order if name in chosen] + chosen))
    for name in order:
        if name in recorded:
            report.states.extend(state() for state in recorded[name])
        elif report.damage:
            reason = "the ledger is damaged, and does not tell any more whether it is applied"
            report.states.append(PatchState(name, "corrupt", None, None, None, (), reason, site=site.home))
        elif name in upstreamed and not (listed and name in wanted):
            report.states.extend(state() for state in upstreamed[name])
        else:
            report.states.append(drift.never_applied(name, wanted=name in wanted))
    if marks:
        from patchkit.ops.experiment import as_before

        report.states[:] = as_before(report.states, marks)
    return report


def _as_is(state: PatchState) -> PatchState:
    return state


def _read_home(site: Site, path: str, report: Report, told: list[str]) -> tuple[Iterable[PatchState], _Home | None]:
    """The ledger of one directory, mended where that is needed, and the states that are known without a look."""
    halted = None
    if os.path.lexists(state_path(path, "journal.json")):
        from patchkit.ops.session import mend_home

        try:
            mended = mend_home(site, path, wait=False)
        except SiteError as error:
            halted = error
        else:
            if mended.running is not None:
                report.notices.extend(mended.notices)
                return (), _at_work(path, mended.running)
            told.extend(mended.notices)
    try:
        ledger = read(path)
    except SiteError as error:
        if error.code != "corrupt" or "salvaged" not in error.details:
            raise
        from patchkit.ops.drift import salvaged

        report.damage.append(error)
        return salvaged(site, path, error), None
    home = _Home(path, ledger)
    if halted is None:
        return (), home
    from patchkit.ops.interrupted import half_written

    half = half_written(path, ledger, halted)
    home.patches = [patch for patch in home.patches if patch["name"] not in half]
    if half:
        first = halted.message.partition("\n")[0].removesuffix(":")
        report.notices.append(f"an interrupted command could not be taken back: {first}")
    else:
        report.notices.append(f"an interrupted command had been completed; tidying up waits: {halted.message}")
    return half.values(), home


def _at_work(path: str, journal: Journal) -> _Home:
    """A directory that a command is changing at this moment, judged by the ledger as it was before, if it still is."""
    from patchkit.ops.interrupted import before_it

    ledger = read(path)
    home = _Home(path, ledger)
    if ledger is not None and ledger["tx"] != journal.tx:
        home.files = {**home.files, **before_it(journal, ledger)}
    home.changing = ledger is None or ledger["tx"] != journal.tx
    return home


class _Installs:
    """Which versions lie in the directories of the path, by the names of their metadata: a hint of what is wrong."""

    def __init__(self, site: Site, homes: Sequence[_Home]) -> None:
        self._site = site
        self._recorded = {home.path: {str(patch["name"]) for patch in home.patches} for home in homes}
        self._wanted = {str(patch["distribution"]) for home in homes for patch in home.patches}
        self._found: dict[str, dict[str, list[str]]] = {}
        self._glances: dict[str, Glance] = {}

    def doubtful(self, home: _Home, patch: Mapping[str, Any]) -> bool:
        """Whether the install that a patch is on may not be the one that imports find."""
        distribution = str(patch["distribution"])
        if len(self._in(home.path).get(distribution, ())) > 1:
            return True
        for directory in self._site.paths:
            if directory == home.path or os.path.realpath(directory) == os.path.realpath(home.path):
                return False
            if distribution in self._in(directory):
                # Where the patch is on that one as well, this is a record of what other environments see.
                return patch["name"] not in self._recorded.get(directory, ())
        return False

    def glance(self, home: _Home) -> Glance:
        """What may go before a home's files for imports."""
        found = self._glances.get(home.path)
        if found is None:
            found = self._glances[home.path] = Glance(self._site, home.path)
        return found

    def _in(self, directory: str) -> dict[str, list[str]]:
        found = self._found.get(directory)
        if found is None:
            found = self._found[directory] = infos_of(directory, self._wanted)
        return found


def _applied_state(home: _Home, patch: Mapping[str, Any], installs: _Installs, drift: Drift) -> PatchState:
    name, info = str(patch["name"]), patch["info"]
    keys: Sequence[str] = patch["files"]
    # A file that the ledger holds no more went back when a later version was patched and unpatched.
    files = tuple(FileDrift(key, home.files.get(key, "pristine")) for key in keys)
    if not installed(home.path, info):
        return drift.other_install(home.path, patch, files)
    if installs.doubtful(home, patch):
        found = drift.not_imported(home.path, patch, files)
        if found is not None:
            return found
    version = str(patch["version"])
    another = False  # build of the same version
    if any(file.state == "modified" for file in files):
        rechecked = drift.rechecked(home.path, files)
        another, files = rechecked != files, rechecked
    kinds = {file.state for file in files}

    def state(word: StateWord, reason: str | None) -> PatchState:
        where = str(patch["distribution"])
        return PatchState(name, word, where, version, version, files, reason, site=home.path)

    if kinds <= {"applied"}:
        changed = drift.edited(home.path, patch)
        if changed is not None:
            return state("stale", changed)
        if name in home.lost:
            reason = f"the ledger has lost {', '.join(home.lost[name])}: `patchkit sync` or `patchkit apply {name}` "
            return state("corrupt", reason + "finds it again where it can, else with --fetch")
        odd = not home.linked.isdisjoint(keys) or installs.glance(home).sees(keys)
        return state("applied", drift.beside(home.path, patch) if odd else None)
    if "unreadable" in kinds:
        return state("modified", f"cannot be read: {_first(files, 'unreadable')[0]}")
    if "modified" in kinds or "missing" in kinds:
        if "modified" in kinds:
            taint = drift.tainted(home.path, patch)
            if taint is not None:
                return state("modified", taint)
            what, several = _first(files, "modified")
            was = "were edited since" if several else "was edited since"
            if not several and what in home.taken:
                was = "is there again, with other content"
            more = drift.hand_edits(home.path, name)
            return state("modified", f"{what} {was}: see `patchkit diff {name}`{more}")
        what, several = _first(files, "missing")
        gone = "are gone" if several else "is gone"
        return state("modified", f"{what} {gone}: `{drift.reinstall(patch)}`, then `patchkit sync`")
    # An installer leaves a file that a patch added where it is: it knows nothing of it.
    edited = {file.state for file in files if file.path not in home.added}
    if kinds == {"pristine"} or edited == {"pristine"}:
        upstream = drift.upstreamed(home.path, patch)
        if upstream is not None:
            return state("upstreamed", upstream)
        if another:
            build = f"another build of {patch['distribution']} {version} was installed"
            return state("lost", f"{build}: run `patchkit sync`")
        return state("lost", "a reinstall brought the pristine bytes back: run `patchkit sync`")
    what, several = _first(files, "pristine")
    added = all(file.path in home.added for file in files if file.state == "pristine")
    back = "gone" if added else "pristine again"
    return state("partial", f"{what} {'are' if several else 'is'} {back}: run `patchkit sync`")


def _first(files: Sequence[FileDrift], state: FileWord) -> tuple[str, bool]:
    """The first of the files in that state, how many more there are, and whether there are any."""
    paths = [file.path for file in files if file.state == state]
    more = len(paths) - 1
    return paths[0] + (f" and {more} more file{'s' if more > 1 else ''}" if more else ""), more > 0
