"""``live``: which applied patches a job really executed, judged by the records of its probes and by nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from patchkit.errors import PatchkitError
from patchkit.ops.records import Record, read_folder
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from typing import Literal

    from patchkit.ops.homes import Homes
    from patchkit.ops.processes import Process

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

    ``seen`` is None where the job was named by a folder: which processes it had is not known then.
    """

    records: tuple[Record, ...]
    folders: tuple[str, ...]
    problems: tuple[str, ...]
    seen: tuple[Seen, ...] | None


def applied(homes: Homes, names: Sequence[str] = ()) -> list[Applied]:
    """The applied patches of a site (of ``names`` those that are), with the probes that each one's version has.

    Raises:
        SiteError: A ledger is damaged.
    """
    from patchkit.ops.change import ledger_patch
    from patchkit.site.guard import version_matches

    found = []
    for workspace in homes.all():
        for entry in workspace.ledger.patches:
            if names and entry.name not in names:
                continue
            probes: tuple[Probe, ...] = ()
            problem = None
            try:
                patch = ledger_patch(workspace, entry)
                probes = tuple(
                    Probe(edit.index, file, edit.scope or "", edit.text)
                    for edit in patch.edits
                    if edit.action == "probe" and (not edit.versions or version_matches(edit.versions, entry.version))
                    for file in edit.files
                )
            except PatchkitError as error:
                problem = error.message.partition("\n")[0]
            about = (entry.name, entry.distribution, entry.version, entry.applied_at, _seconds(entry.applied_at))
            found.append(Applied(*about, probes, problem, workspace.site.home))
    return found


def _seconds(iso: str) -> float | None:
    try:
        return datetime.fromisoformat(iso).timestamp()
    except (ValueError, OverflowError):
        return None  # written by hand: then every record counts


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
    named = tuple(dict.fromkeys(process.folder for process in processes if process.folder is not None))
    records: list[Record] = []
    problems: list[str] = []
    for folder in dict.fromkeys((*named, *folders)):
        found, told = read_folder(folder, missing=folder not in folders)
        records += found
        problems += told
    kept = [record for record in records if any(_belongs(record, process) for process in processes)]
    seen = tuple(_seen(process, kept, patches, bool(folders)) for process in processes)
    return Evidence(tuple(kept), tuple(dict.fromkeys((*named, *folders))), tuple(problems), seen)


def _belongs(record: Record, process: Process) -> bool:
    """Whether a process left a record: a number is used again, a number and a start are not."""
    return record.pid in process.pids and (record.ticks is None or record.ticks == process.ticks)


def _seen(process: Process, records: Sequence[Record], patches: Sequence[Applied], given: bool) -> Seen:
    from patchkit.runtime.probe import FOLDER_VARIABLE

    older = tuple(patch.name for patch in patches if patch.since is not None and process.started < patch.since)
    if any(_belongs(record, process) for record in records):
        return Seen(process, "known", older, None)
    if process.python is False:
        return Seen(process, "not-python", older, None)
    if not process.readable:
        return Seen(process, "unknown", older, "its environment may not be read: ask as its user, or as root")
    if process.folder is None and not given:
        return Seen(process, "unknown", older, f"its environment does not show {FOLDER_VARIABLE}")
    return Seen(process, "known", older, "no probe was loaded")


def judge(patches: Sequence[Applied], evidence: Evidence, names: Sequence[str] = ()) -> list[Verdict]:
    """The verdict on each applied patch, on each further name, and on what else the records tell of."""
    unknown = [seen for seen in evidence.seen or () if seen.state == "unknown"]
    found = [_verdict(patch, evidence, unknown) for patch in patches]
    known = {patch.name for patch in patches}
    recorded = dict.fromkeys(record.patch for record in evidence.records)
    for name in dict.fromkeys((*names, *(() if names else recorded))):
        if name in known:
            continue
        probes = dict.fromkeys(Probe(r.edit, r.file, r.function, r.text) for r in evidence.records if r.patch == name)
        patch = Applied(name, None, None, None, None, tuple(probes), None, "")
        counts = name in names or not patches
        if probes:
            told = _verdict(patch, evidence, unknown)._replace(counts=counts)
            found.append(told._replace(reason="; ".join(filter(None, ("not in this site's ledger", told.reason)))))
        else:
            found.append(Verdict(patch, "not-applied", "neither in this site's ledger nor in any record", (), counts))
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
        number = len({(record.pid, record.ticks) for record in own if record not in current})
        reasons.append(f"{number} process{'es' if number > 1 else ''} had loaded it before this apply: restart")
    if state_of != "ran" and unknown:
        pids = ", ".join(str(seen.process.pid) for seen in unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        late = [seen for seen in unknown if patch.name in seen.older_than]
        reasons.append(f"what pid {pids} ran is not known: {unknown[0].reason}")
        if late:
            reasons.append(f"pid {late[0].process.pid} started before it was applied: what it had loaded is unpatched")
    if state_of == "not-loaded":
        older = [s.process.pid for s in evidence.seen or () if patch.name in s.older_than and s.state == "known"]
        late_text = f"; pid {older[0]} started before it was applied: restart it" if older else ""
        reasons.append("no process loaded the patched module" + late_text)
    if state_of == "loaded":
        reasons.append("the patched module was loaded, and the function was not called")
    return Verdict(patch, state_of, "; ".join(reasons) or None, tuple(probes))


def all_ran(verdicts: Sequence[Verdict]) -> bool:
    """Whether there is something to judge, and all of it ran."""
    counted = [verdict for verdict in verdicts if verdict.counts]
    return bool(counted) and all(verdict.state == "ran" for verdict in counted)
