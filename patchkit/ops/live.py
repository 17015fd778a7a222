"""``live``: which applied patches a job really executed, judged by the records of its probes and by nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from patchkit.errors import PatchkitError, UsageError
from patchkit.ops.records import Record, read_folder
from patchkit.runtime.entries import COPY_RAN
from patchkit.runtime.imported import CLOCK_SECONDS
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from typing import Literal

    from patchkit.model.patch import Patch
    from patchkit.ops.homes import Homes
    from patchkit.ops.processes import Process
    from patchkit.state.ledger import FileEntry, PatchEntry

    ProbeWord = Literal["ran", "loaded", "not-loaded", "unknown"]
    LiveWord = Literal["ran", "partly", "loaded", "not-loaded", "unknown", "no-probe", "not-applied"]
    ProcessWord = Literal["known", "unknown", "not-python"]


class Probe(NamedTuple):
    """One probe of a patch in one file."""

    edit: int
    file: str
    function: str
    text: str


class Applied(NamedTuple):
    """An applied patch and its probes; ``problem`` says why they are not known, where that is so.

    ``since`` is when it was applied, in seconds since the epoch; None for what no ledger has.
    """

    name: str
    distribution: str | None
    version: str | None
    applied_at: str | None
    since: float | None
    probes: tuple[Probe, ...]
    problem: str | None
    site: str


class ProbeVerdict(NamedTuple):
    """What became of one probe: the records of the processes that ran it, and of those that only loaded it."""

    probe: Probe
    state: ProbeWord
    ran: tuple[Record, ...]
    loaded: tuple[Record, ...]


class Verdict(NamedTuple):
    """What became of one patch. ``counts`` is False for what only a record tells of: it is shown and not judged."""

    patch: Applied
    state: LiveWord
    reason: str | None
    probes: tuple[ProbeVerdict, ...]
    counts: bool = True


class Seen(NamedTuple):
    """One process of the tree: what is known of it, and which patches were applied only after it had started."""

    process: Process
    state: ProcessWord
    older_than: tuple[str, ...]
    reason: str | None


class Evidence(NamedTuple):
    """The records that belong to a job, the folders they are from, what could not be read, and its processes.

    ``seen`` is None where the job was named by a folder: which processes it had is not known then. ``foreign`` are
    records of other environments, whose module is not the file of this site.
    """

    records: tuple[Record, ...]
    folders: tuple[str, ...]
    problems: tuple[str, ...]
    seen: tuple[Seen, ...] | None
    foreign: tuple[Record, ...] = ()


#: Seconds within which an apply that has the time of a whole second is taken to have written its files.
_WRITING_SECONDS = 10.0


def applied(homes: Homes, names: Sequence[str] = ()) -> list[Applied]:
    """The applied patches of a site (of ``names`` those that are), with the probes that each one's version has.

    Raises:
        SiteError: A ledger is damaged.
    """
    from patchkit.ops.change import ledger_patch

    found = []
    for workspace in homes.all():
        for entry in workspace.ledger.patches:
            if names and entry.name not in names:
                continue
            probes: tuple[Probe, ...] = ()
            problem = None
            try:
                probes = probes_of(ledger_patch(workspace, entry), entry.version)
            except PatchkitError as error:
                problem = error.message.partition("\n")[0]
            since = when_applied(entry, workspace.ledger.files)
            about = (entry.name, entry.distribution, entry.version, entry.applied_at, since)
            found.append(Applied(*about, probes, problem, workspace.site.home))
    return found


def probes_of(patch: Patch, version: str) -> tuple[Probe, ...]:
    """The probes that a patch puts into this version of its target."""
    from patchkit.site.guard import version_matches

    return tuple(
        Probe(edit.index, file, edit.scope or "", edit.text)
        for edit in patch.edits
        if edit.action == "probe" and (not edit.versions or version_matches(edit.versions, version))
        for file in edit.files
    )


def when_applied(entry: PatchEntry, files: Mapping[str, FileEntry]) -> float | None:
    """When a patch came into its files. The ledger's own time has whole seconds; a process may be younger than that."""
    try:
        stated = datetime.fromisoformat(entry.applied_at).timestamp()
    except (ValueError, OverflowError):
        return None  # written by hand: then every record counts
    written = [
        file.stat.ctime_ns / 1e9
        for file in (files[key] for key in entry.files)
        if file.stat is not None and file.layers and file.layers[-1].patch == entry.name
    ]
    return max((time for time in written if stated <= time < stated + _WRITING_SECONDS), default=stated)


def of_folder(folder: str) -> Evidence:
    """The records in a folder.

    Raises:
        UsageError: ``no-probes-folder``.
    """
    records, problems = read_folder(folder)
    return Evidence(tuple(records), (folder,), tuple(problems), None)


def of_processes(processes: Sequence[Process], folders: Sequence[str], patches: Sequence[Applied]) -> Evidence:
    """The records that these processes left in the folders of their environments, and in ``folders``.

    Raises:
        UsageError: ``no-probes-folder``: one of ``folders`` is not there.
    """
    named = [process.folder for process in processes if process.folder is not None]
    by_place: dict[object, str] = {}  # one folder has many names, in containers one for each process
    for folder in (*folders, *named):
        by_place.setdefault(_place(folder), folder)
    records: list[Record] = []
    problems: list[str] = []
    lost: dict[object, str] = {}
    for place, folder in by_place.items():
        try:
            found, told = read_folder(folder, missing=folder not in folders)
        except UsageError as error:
            if folder in folders:
                raise
            lost[place] = error.message
            continue
        records += found
        problems += told
    by_number: dict[int, list[Process]] = {}
    for process in processes:
        for pid in process.pids:
            by_number.setdefault(pid, []).append(process)
    kept = []
    known = set()
    for record in records:
        of = next((process for process in by_number.get(record.pid, ()) if _belongs(record, process)), None)
        if of is not None:
            known.add(of.pid)
            kept.append(record._replace(path=of.root + record.path) if os.path.isabs(record.path) else record)
    seen = []
    for process in processes:
        doubt = process.lossy or (process.folder and lost.get(_place(process.folder))) or None
        seen.append(_seen(process, process.pid in known, doubt, patches, bool(folders)))
    return Evidence(tuple(kept), tuple(by_place.values()), tuple(problems), tuple(seen))


def _place(folder: str) -> object:
    """What a folder is, whatever it is called."""
    try:
        found = os.stat(folder)
    except OSError:
        return os.path.realpath(folder)
    return found.st_dev, found.st_ino


def _belongs(record: Record, process: Process) -> bool:
    """Whether a process left a record: a number is used again, a number and a start are not."""
    if record.pid not in process.pids:
        return False
    if record.ticks is None:
        return (record.loaded if record.ran is None else record.ran) > process.started - CLOCK_SECONDS
    return record.ticks == process.ticks


def set_apart(evidence: Evidence, patches: Sequence[Applied], home: str | None = None) -> Evidence:
    """The evidence without the records of other environments: their module is here, and is not the site's file.

    Of another host's file, or one that is not to be seen from here, that cannot be told: its records count. Patches in
    memory, which no ledger has, are looked for in ``home``.
    """
    here = os.uname().nodename if hasattr(os, "uname") else ""
    sites = {patch.name: patch.site for patch in patches if patch.site}
    judged: dict[tuple[str, str, str], bool] = {}
    own: list[Record] = []
    foreign: list[Record] = []
    for record in evidence.records:
        site = sites.get(record.patch, home)
        seen_here = record.host == here or record.path.startswith("/proc/")
        if site is None or not seen_here or not os.path.isabs(record.path):
            own.append(record)
            continue
        about = (record.path, site, record.file)
        if about not in judged:
            judged[about] = _differ(record.path, os.path.join(site, *record.file.split("/")))
        (foreign if judged[about] else own).append(record)
    return evidence._replace(records=tuple(own), foreign=tuple(foreign))


def _differ(one: str, other: str) -> bool:
    try:
        return not os.path.samefile(one, other)
    except OSError:
        return False


def _seen(process: Process, recorded: bool, doubt: str | None, patches: Sequence[Applied], given: bool) -> Seen:
    from patchkit.ops.processes import older
    from patchkit.runtime.probe import FOLDER_VARIABLE

    before = tuple(patch.name for patch in patches if patch.since is not None and older(process, patch.since))
    if process.python is False and not recorded:
        return Seen(process, "not-python", before, None)
    if doubt is not None:
        return Seen(process, "unknown", before, doubt)
    if recorded:
        return Seen(process, "known", before, None)
    if not process.readable:
        return Seen(process, "unknown", before, "its environment may not be read: ask as its user, or as root")
    if process.folder is None and not given:
        return Seen(process, "unknown", before, f"its environment does not show {FOLDER_VARIABLE}")
    return Seen(process, "known", before, "no probe was loaded")


def judge(
    patches: Sequence[Applied],
    evidence: Evidence,
    names: Sequence[str] = (),
    declared: Callable[[str], tuple[Probe, ...] | None] = lambda name: None,
) -> list[Verdict]:
    """The verdict on each applied patch, on each further name, and on what else the records tell of.

    ``declared`` gives the probes of a patch that no ledger has, by its file: one in memory, whose records tell only of
    those that were loaded.
    """
    unknown = [seen for seen in evidence.seen or () if seen.state == "unknown"]
    found = [_verdict(patch, evidence, unknown) for patch in patches]
    known = {patch.name for patch in patches}
    recorded = dict.fromkeys(record.patch for record in evidence.records)
    for name in dict.fromkeys((*names, *(() if names else recorded))):
        if name in known:
            continue
        probes = dict.fromkeys(Probe(r.edit, r.file, r.function, r.text) for r in evidence.records if r.patch == name)
        more = declared(name) if probes else None
        probes.update(dict.fromkeys(more or ()))
        patch = Applied(name, None, None, None, None, tuple(probes), None, "")
        counts = name in names or not patches
        if probes:
            told = _verdict(patch, evidence, unknown)._replace(counts=counts)
            about = _not_of_ledger(probes, bool(more))
            found.append(told._replace(reason="; ".join(filter(None, (about, told.reason)))))
        else:
            reasons = ["neither in this site's ledger nor in any record of it", *_of_others(name, evidence)]
            reasons += _not_known(unknown)
            found.append(Verdict(patch, "not-applied", "; ".join(reasons), (), counts))
    return found


def _verdict(patch: Applied, evidence: Evidence, unknown: Sequence[Seen]) -> Verdict:
    own = [record for record in evidence.records if record.patch == patch.name]
    # A process that had loaded the module before had other bytes, perhaps those of an earlier patch of this name.
    current = [record for record in own if patch.since is None or record.loaded >= patch.since]
    probes = []
    for probe in patch.probes:
        mine = [r for r in current if (r.edit, r.file, r.function) == (probe.edit, probe.file, probe.function)]
        ran = tuple(record for record in mine if record.ran is not None)
        state: ProbeWord = "ran" if ran else "loaded" if mine else "unknown" if unknown else "not-loaded"
        probes.append(ProbeVerdict(probe, state, ran, tuple(record for record in mine if record.ran is None)))
    reasons = []
    if patch.problem is not None:
        reasons.append(patch.problem)
        return Verdict(patch, "unknown", patch.problem, ())
    if not probes:
        return Verdict(patch, "no-probe", "it has no `probe` edit, so whether it ran cannot be known", ())
    words = {item.state for item in probes}
    state_of: LiveWord = next(iter(words)) if len(words) == 1 else "partly" if "ran" in words else "loaded"
    if len(own) > len(current):
        number = len({(r.pid, r.ticks) for r in own if patch.since is not None and not r.loaded >= patch.since})
        reasons.append(f"{number} process{'es' if number > 1 else ''} had loaded it before this apply: restart")
    if state_of != "ran" and unknown:
        late = [seen for seen in unknown if patch.name in seen.older_than]
        reasons += _not_known(unknown)
        if late:
            reasons.append(f"pid {late[0].process.pid} started before it was applied: what it had loaded is unpatched")
    if state_of == "not-loaded":
        older = [s.process.pid for s in evidence.seen or () if patch.name in s.older_than and s.state == "known"]
        late_text = f"; pid {older[0]} started before it was applied: restart it" if older else ""
        reasons.append("no process loaded the patched module" + late_text)
    if state_of == "loaded":
        reasons.append("the patched module was loaded" + ("" if unknown else ", and the function was not called"))
    reasons += _of_others(patch.name, evidence)
    return Verdict(patch, state_of, "; ".join(reasons) or None, tuple(probes))


def _not_of_ledger(probes: Iterable[Probe], declared: bool) -> str:
    """What a patch is that records tell of and no ledger has."""
    if declared:
        return "not in this site's ledger: from memory, or reverted since"
    if all(probe.text == COPY_RAN for probe in probes):
        return "a copy that `patchkit transplant` made; functions of it that did not run are not known here"
    return "not in this site's ledger, and what else it has is not known without its file"


def _not_known(unknown: Sequence[Seen]) -> list[str]:
    pids = ", ".join(str(seen.process.pid) for seen in unknown[:5]) + (", ..." if len(unknown) > 5 else "")
    return [f"what pid {pids} ran is not known: {unknown[0].reason}"] if unknown else []


def _of_others(name: str, evidence: Evidence) -> list[str]:
    found = [record for record in evidence.foreign if record.patch == name]
    number = len({(record.pid, record.ticks) for record in found})
    processes = f"{number} process{'es' if number > 1 else ''}"
    what = (
        f"{processes} loaded another environment's module, {found[0].path}, which does not count here" if found else ""
    )
    return [what] if found else []


def all_ran(verdicts: Sequence[Verdict]) -> bool:
    """Whether there is something to judge, and all of it ran."""
    counted = [verdict for verdict in verdicts if verdict.counts]
    return bool(counted) and all(verdict.state == "ran" for verdict in counted)
