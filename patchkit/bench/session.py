"""One session: the arms in turn, a fresh process each, a verdict after every pair, and the site as it earned to be.

Whatever ends it before its verdict, the site goes back to what it was: here, by the guardian, or by the next command.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from patchkit.bench import store
from patchkit.bench.alone import alone
from patchkit.bench.arms import Arms
from patchkit.bench.engine import Job
from patchkit.bench.guardian import Guardian, end_processes
from patchkit.bench.judge import decided, judge_point, overall
from patchkit.bench.launching import with_evidence
from patchkit.bench.observation import Fired, Observation
from patchkit.bench.outcome import aftermath_text, confirmed, told_preflight
from patchkit.bench.plan import Plan, Step, clock, count_of, steps_of
from patchkit.bench.report import Aftermath, PointResult, Report, Run
from patchkit.bench.signals import ending_in_order, undisturbed
from patchkit.bench.traced import folders_of, traced_rows
from patchkit.bench.voice import Voice
from patchkit.errors import PatchkitError, UsageError
from patchkit.ops import experiment
from patchkit.ops.records import read_folder
from patchkit.runtime.probe import FOLDER_VARIABLE
from patchkit.state.lock import lock

if TYPE_CHECKING:
    from patchkit.model.recipe import ArmName, Point

_BEHIND = "the engine left processes behind that were no longer of its group; they were ended before the next run"


def begin(plan: Plan, resume: str | None) -> store.Session:
    """The session of a plan: a new one, or the one in the folder ``resume`` (empty: the newest unfinished).

    Raises:
        UsageError: ``no-session``; ``finished``; ``other-inputs``: something that it depends on has changed.
        SiteError: The folder cannot be made.
    """
    inputs = store.inputs_of(plan, os.environ)
    if resume is None:
        return store.create(plan, inputs)
    folder = os.path.abspath(resume) if resume else store.unfinished(plan.options.runs, plan.recipe.name)
    session = store.open_session(folder)
    if store.finished(folder):
        raise UsageError(
            f"{folder} is finished",
            code="finished",
            hint=f"patchkit report {folder} shows it; without --resume a new session begins",
            details={"path": folder},
        )
    changed = store.differences(session.inputs, inputs)
    if changed:
        raise UsageError(
            "\n".join(
                [f"{folder} cannot go on, since it would not be one experiment:", *(f"  {one}" for one in changed)]
            ),
            code="other-inputs",
            hint="undo that, or begin a new session without --resume",
            details={"path": folder, "changes": changed},
        )
    return session


def run_session(plan: Plan, session: store.Session, voice: Voice) -> Report:
    """Run what the session has not run yet, judge it, and leave the site as the verdict says.

    Raises:
        SiteError: The site cannot be put back; its mark stays.
        Ended: A signal asked for the end; the site is as it was.
        KeyboardInterrupt: The same.
    """
    token = uuid.uuid4().hex
    with ExitStack() as stack:
        stack.enter_context(ending_in_order())
        stack.enter_context(alone(plan.home))
        with undisturbed():
            guardian = Guardian(plan.site, session.folder, token)
        try:
            if plan.swaps:
                _mark(plan, session, guardian, token)
            report = _Session(plan, session, voice, guardian, token).run()
        except BaseException:
            with undisturbed():
                _undo(plan, token, guardian, voice)
            raise
        with undisturbed():
            if plan.swaps and report.aftermath.action != "not-put-back":
                experiment.remove_mark(plan.home, token)
            guardian.dismiss()
            experiment.leave(token)
    return report


def _mark(plan: Plan, session: store.Session, guardian: Guardian, token: str) -> None:
    """Say that an experiment is at work here, unless one is."""
    host, space = experiment.host()
    names = tuple(plan.patches)
    with lock(plan.home):
        experiment.gate(plan.site, plan.home, lambda text: None)
        experiment.write_mark(
            plan.home,
            experiment.Mark(
                token,
                plan.recipe.name,
                session.folder,
                store.now(),
                experiment.this_process(),
                guardian.who,
                host,
                space,
                names,
                plan.before,
            ),
        )


def _undo(plan: Plan, token: str, guardian: Guardian, voice: Voice) -> None:
    """Put the site back; what is in the way of that is told, and stays for a person."""
    try:
        if plan.swaps:
            mark = experiment.read_mark(plan.home)
            if mark is not None and mark.token == token:
                experiment.put_back(Arms(plan, voice.notice).site, mark.before, voice.notice)
                experiment.remove_mark(plan.home, token)
    except PatchkitError as error:
        experiment.give_up(plan.home, token)
        voice.notice(f"the site cannot be put back: {error.message}")
        voice.notice("patchkit check tells what it is like; patchkit rebench --restore tries again")
    finally:
        guardian.dismiss()
        experiment.leave(token)


class _Session:
    def __init__(self, plan: Plan, session: store.Session, voice: Voice, guardian: Guardian, token: str) -> None:
        self.plan, self.session, self.voice = plan, session, voice
        self.guardian, self.token = guardian, token
        self.arms = Arms(plan, voice.notice)
        self.runs = list(session.runs)
        self._began = time.monotonic() - sum(run.seconds for run in session.runs)
        self._guess = store.seconds_before(plan.options.runs, plan.recipe.name)
        self._counts: dict[tuple[str, ArmName, str, int | None], int] = {}
        self._drop_half_pairs()

    def run(self) -> Report:
        """Everything, to the report on disk."""
        recipe = self.plan.recipe
        results: list[PointResult] = []
        broken: PatchkitError | None = None
        try:
            for point in recipe.points:
                results.append(self._point(point))
                if results[-1].verdict in ("invalid", "error"):
                    break
            else:
                self.arms.refuse_changed()  # during the last process: no later one looked
            verdict, kind, reason = overall(results)
            if recipe.protocol.traced and verdict not in ("invalid", "error"):
                for arm in ("baseline", "treatment"):
                    self._observed(Step(recipe.points[len(results) - 1], arm, "traced"))
        except PatchkitError as error:
            broken = error
            verdict, kind, reason = "error", None, error.message
        missing = len(recipe.points) - len(results)
        if missing and broken is None:
            reason += f"; {missing} more point{'s were' if missing > 1 else ' was'} not measured"
        last = recipe.points[max(0, len(results) - 1)]
        aftermath = self._aftermath(verdict, last, measured=broken is None)
        report = self._report(verdict, kind, reason, results, aftermath)
        store.save_report(self.session.folder, report)
        return report

    # --- processes

    def _point(self, point: Point) -> PointResult:
        recipe = self.plan.recipe
        for step in steps_of(self.plan, point):
            run = self._observed(step)
            failed = run.observation.failure is not None
            if step.kind == "preflight" and failed:
                self._observed(Step(point, "baseline", "preflight"))
            if failed or self._whole(step):
                result = decided(recipe, point, self._of(point))
                if result is not None:
                    return told_preflight(point, result, self.runs)
        return judge_point(recipe, point, self._of(point))

    def _of(self, point: Point) -> list[Run]:
        return [run for run in self.runs if run.point == point.label]

    def _whole(self, step: Step) -> bool:
        """Whether there is something to judge after a step: also a whole pair."""
        if step.pair is None:
            return True
        return sum(1 for run in self._of(step.point) if run.pair == step.pair) == 2

    def _drop_half_pairs(self) -> None:
        """The runs of a pair are neighbours in time: one whose other half was never run does not count."""
        half = [
            run
            for run in self.runs
            if run.pair is not None
            and run.observation.failure is None
            and sum(1 for other in self.runs if (other.point, other.pair) == (run.point, run.pair)) < 2
        ]
        store.set_aside(self.session, half)
        self.runs = [run for run in self.runs if run not in half]

    def _observed(self, step: Step) -> Run:
        """The run of a step: one of an earlier part of the session, or a new process."""
        key = (step.point.label, step.arm, step.kind, step.pair)
        used = [run for run in self.runs if (run.point, run.arm, run.kind, run.pair) == key]
        wanted = self._asked(key)
        if len(used) >= wanted:
            return used[wanted - 1]
        return self._observe(step)

    def _asked(self, key: tuple[str, ArmName, str, int | None]) -> int:
        """How often a step of this kind was asked for, this time included: discarded runs may be several."""
        self._counts[key] = self._counts.get(key, 0) + 1
        return self._counts[key]

    def _observe(self, step: Step) -> Run:
        plan, protocol = self.plan, self.plan.recipe.protocol
        order = max((run.order for run in self.runs), default=0) + 1
        arm = step.point.arm(step.arm)
        left = self._left(order) if step.kind in ("preflight", "discarded", "measured") else ""
        self.voice.begin(f"{self._count(order)} {_name(step)}{left}")
        env = self.arms.enter(arm)
        folder = store.job_folder(self.session, order, step)
        probes = os.path.join(folder, "probes")
        os.mkdir(probes)
        if protocol.pause and self.runs:
            time.sleep(protocol.pause)
        job = Job(
            arm,
            plan.site,
            plan.root,
            folder,
            {**env, FOLDER_VARIABLE: probes},
            forbid=step.kind == "preflight",
            profile=step.kind == "traced",
        )
        load, started, began = store.load(), store.now(), time.monotonic()
        try:
            seen: Observation = self.guardian.group.call(plan.engine.observe, job, self.voice.tick)
        finally:
            behind = end_processes((), folder)
        seen = with_evidence(seen, plan.recipe.evidence)
        seconds = round(time.monotonic() - began, 3)
        records, problems = read_folder(probes, missing=True)
        fired = tuple(
            Fired(one.patch, one.edit, one.function, one.pid, one.role, one.ran is not None) for one in records
        )
        unread = (f"a probe's record cannot be read: {problem}" for problem in problems)
        notes = (*seen.notes, *([_BEHIND] if behind else []), *unread)
        seen = seen._replace(probes=(*seen.probes, *fired), notes=notes)
        run = Run(order, step.point.label, step.arm, step.kind, step.pair, started, seconds, seen)
        store.save_run(folder, run, load)
        self.runs.append(run)
        what = "done" if seen.failure is None else f"failed: {seen.failure.kind}: {seen.failure.message}"
        self.voice.done(f"{self._count(order)} {_name(step)}: {what} in {clock(seconds)}")
        return run

    def _count(self, order: int) -> str:
        least, most = count_of(self.plan)
        return f"[{order}/{least}]" if least == most else f"[{order}/{least}-{most}]"

    def _left(self, order: int) -> str:
        elapsed = f"; {clock(time.monotonic() - self._began)} so far" if self.runs else ""
        each = [run.seconds for run in self.runs]
        one = sorted(each)[len(each) // 2] if each else self._guess
        if one is None:
            return elapsed
        least, most = (clock(max(0, count - order + 1) * one) for count in count_of(self.plan))
        span = least if least == most else f"{least} to {most}"
        return f"{elapsed}{',' if elapsed else ';'} about {span} left"

    # --- the end

    def _aftermath(self, verdict: str, point: Point, *, measured: bool) -> Aftermath:
        plan = self.plan
        if not plan.swaps:
            return aftermath_text(plan, verdict, None, None)
        stays = not plan.known_bad and (verdict == "pass" or (verdict == "inconclusive" and plan.options.keep))
        confirm: Run | None = None
        try:
            if stays:
                self.arms.refuse_changed()
                experiment.arrange(self.arms.site, plan.winners, self.voice.notice, among=list(plan.patches))
            else:
                experiment.put_back(self.arms.site, plan.losers, self.voice.notice)
                self.arms.left()
                before = [run for run in self._of(point) if run.kind == "measured" and run.arm == "baseline"]
                if measured and before and verdict != "error":
                    confirm = self._observed(Step(point, "baseline", "confirm"))
                    experiment.put_back(self.arms.site, plan.losers, self.voice.notice)
            mark = experiment.read_mark(plan.home)
            if mark is not None:  # from here on this is what it is put back to
                experiment.write_mark(plan.home, mark._replace(before=experiment.held(plan.home)))
        except PatchkitError as error:
            experiment.give_up(plan.home, self.token)
            text = f"cannot be put back: {error.message}; `patchkit check` tells more, "
            return Aftermath("not-put-back", text + "`patchkit rebench --restore` tries again")
        return aftermath_text(plan, verdict, confirmed(plan.recipe, self._of(point), confirm), confirm)

    def _report(
        self, verdict: str, kind: str | None, reason: str, results: Sequence[PointResult], aftermath: Aftermath
    ) -> Report:
        plan, recipe = self.plan, self.plan.recipe
        seen = [run.observation for run in self.runs]
        versions = dict(plan.versions)
        for one in seen:
            versions.update(one.versions)
        rows, notes = traced_rows(folders_of(self.session.folder, self.runs))
        return Report(
            recipe.name,
            recipe.summary,
            recipe.digest,
            verdict,  # type: ignore[arg-type]
            kind,  # type: ignore[arg-type]
            reason,
            tuple(results),
            tuple(self.runs),
            plan.used,
            aftermath,
            self.session.inputs["started"],
            round(time.monotonic() - self._began, 1),
            self.session.folder,
            plan.home,
            recipe.points[0].treatment.engine.kind,
            versions,
            store.machine(),
            next((one.label for one in seen if one.label), None),
            recipe.source,
            tuple(dict.fromkeys([*plan.notes, *(note for one in seen for note in one.notes), *notes])),
            rows,
        )


def _name(step: Step) -> str:
    words = {
        "preflight": f"preflight, {step.arm} with compilation forbidden",
        "discarded": f"discarded run, {step.arm}",
        "measured": f"pair {step.pair}, {step.arm}",
        "confirm": f"{step.arm} after the revert",
        "traced": f"profiled run, {step.arm}",
    }
    return (f"{step.point.label}: " if step.point.label else "") + words[step.kind]
