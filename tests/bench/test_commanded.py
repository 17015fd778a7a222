"""The engine ``command``, with small programs that behave and misbehave."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support.jobs import arm, job, recipe
from support.sites import bare_site

from patchkit.bench.commanded import MOST, Command, last_object
from patchkit.bench.engines import engine_of
from patchkit.bench.observation import Failure, Measured, Observation
from patchkit.errors import UsageError

GOOD = '{"schema": 1, "metrics": {"throughput": {"value": 5, "unit": "tokens/s"}}}'
SEEN = {"throughput": Measured(5.0, "tokens/s")}


def observe(folder: Path, code: str, *arguments: str, ticks: list[str] | None = None, **engine: Any) -> Observation:
    """A program that is this Python code, run."""
    env = engine.pop("process_env", None)
    which = arm(command=("{python}", "-c", code, *arguments), **engine)
    return engine_of("command").observe(job(folder, which, env=env), (ticks if ticks is not None else []).append)


def failure(seen: Observation) -> Failure:
    assert seen.failure is not None
    return seen.failure


def test_the_last_object_that_is_printed_is_the_result(tmp_path: Path) -> None:
    code = (
        "import sys; print('starting {\"a\": 1}'); print('{\"schema\": 9}'); print('{not json}');"
        f"print({GOOD!r}, end=''); print(' done'); print('INFO {{\"b\": 2}}'); sys.stderr.write('a warning\\n')"
    )
    seen = observe(tmp_path, code)
    assert (seen.metrics, seen.failure, seen.log) == (SEEN, None, str(tmp_path / "job" / "log.txt"))
    log = (tmp_path / "job" / "log.txt").read_text()
    assert sorted(log.splitlines()) == sorted(
        ['starting {"a": 1}', '{"schema": 9}', "{not json}", f"{GOOD} done", 'INFO {"b": 2}', "a warning"]
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{\n "a": {\n  "b": 1\n }\n}\n', {"a": {"b": 1}}),
        ('50 %\r{"a": 1}\r\n', {"a": 1}),
        ('  {"a": 1}', {"a": 1}),
        ('{"a": 1} {"b": 2}\n{"c": \n', {"a": 1}),
        ('{"a": "\ud800"}'.encode("utf-8", "surrogatepass"), {"a": "���"}),
    ],
)
def test_an_object_begins_a_line(text: str | bytes, found: object, tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert last_object(str(path)) == found


def test_another_tools_json_is_read(tmp_path: Path) -> None:
    code = 'print(\'{"p50": 12.5, "rates": [1, 3, 2]}\')'
    places = {"ttft": "p50 in ms", "throughput": "rates"}
    seen = observe(tmp_path, code, reads="json", metrics=places)
    assert seen.failure is None
    assert seen.metrics == {"ttft": Measured(0.0125, "s"), "throughput": Measured(2.0, "tokens/s", (1.0, 3.0, 2.0))}
    other = observe(tmp_path, code, reads="json", metrics={"ttft": "p99"})
    assert failure(other).message.startswith("engine.metrics.ttft: there is no 'p99'; the result has p50, rates; ")


def test_of_a_file_with_a_line_for_each_run_the_last_counts(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1], 'w').write('{\"a\": 1}\\n{\"a\": 2}\\n')"
    assert observe(tmp_path, code, "{result}", reads="json", metrics={"seconds": "a"}).metrics["seconds"].value == 2


def test_greedy_is_not_measured_by_what_samples(tmp_path: Path) -> None:
    which = arm(command=("{python}", "-c", ""), reads="vllm-latency")
    with pytest.raises(UsageError, match=r"fixes temperature 1\.0"):
        Command().check(recipe(tmp_path, which), bare_site(tmp_path))


def test_a_deep_object_is_none(tmp_path: Path) -> None:
    (tmp_path / "out").write_text('{"a":' * 100_000)
    with pytest.raises(ValueError, match="printed no JSON object"):
        last_object(str(tmp_path / "out"))


def test_the_result_may_be_a_file_of_the_job(tmp_path: Path) -> None:
    code = f"import sys; open(sys.argv[1], 'w').write({GOOD!r}); print('{{}}')"
    assert observe(tmp_path, code, "{result}").metrics == SEEN


def test_the_result_may_be_a_file_that_the_recipe_names(tmp_path: Path) -> None:
    assert observe(tmp_path, f"open('out.json', 'w').write({GOOD!r})", result="out.json").metrics == SEEN
    code = f"import sys; open(sys.argv[1], 'w').write({GOOD!r})"
    assert observe(tmp_path, code, "{folder}/x.json", result="{folder}/x.json").metrics == SEEN


def test_a_result_that_lay_there_before_is_not_this_run_s(tmp_path: Path) -> None:
    (tmp_path / "out.json").write_text(GOOD)
    seen = observe(tmp_path, f"print({GOOD!r})", result="out.json")
    assert failure(seen).message.startswith(f"{tmp_path / 'out.json'} was not written; its last line: {{")
    assert (tmp_path / "out.json").read_text() == GOOD


def test_places_in_words_and_what_only_looks_like_one(tmp_path: Path) -> None:
    code = f"import json, sys; json.dump(sys.argv[1:], open('seen', 'w')); print({GOOD!r})"
    observe(tmp_path, code, "{python}", "a{job}b", "{folder}", "{result}", '{"json": {}}', "{unknown}", "{{job}}")
    own = str(tmp_path / "job")
    assert json.loads((tmp_path / "seen").read_text()) == [
        sys.executable,
        f"a{own}/job.json" + "b",
        own,
        f"{own}/output.json",
        '{"json": {}}',
        "{unknown}",
        f"{{{own}/job.json}}",
    ]


def test_a_process_is_told_its_job(tmp_path: Path) -> None:
    code = (
        "import os, shutil; shutil.copy(os.environ['PATCHKIT_JOB'], 'told');"
        f"open('env', 'w').write(os.environ['MINE'] + os.environ['YOURS']); print({GOOD!r})"
    )
    which = arm(command=("{python}", "-c", code), env={"MINE": "recipe"}, max_num_seqs=4)
    seen = engine_of("command").observe(
        job(tmp_path, which, env={"MINE": "user", "YOURS": "-user"}, forbid=True), lambda text: None
    )
    assert seen.metrics == SEEN
    assert (tmp_path / "env").read_text() == "recipe-user"
    told = json.loads((tmp_path / "told").read_text())
    assert told["workload"] == {
        "prompts": ["a", "b"],
        "batch_mult": 2,
        "max_tokens": 3,
        "temperature": 0.0,
        "top_p": None,
        "top_k": None,
        "seed": None,
        "logprobs": None,
        "ignore_eos": True,
        "repeats": 3,
        "concurrency": None,
        "request_rate": None,
    }
    assert {name: told[name] for name in ("schema", "arm", "patches", "root", "folder", "forbid", "profile")} == {
        "schema": 1,
        "arm": "treatment",
        "patches": [],
        "root": str(tmp_path),
        "folder": str(tmp_path / "job"),
        "forbid": True,
        "profile": False,
    }
    assert (told["engine"]["kind"], told["engine"]["max_num_seqs"]) == ("command", 4)
    assert (told["result"], told["python"]) == (str(tmp_path / "job" / "output.json"), sys.executable)


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        ("import sys; print('oh'); sys.exit(3)", "status", "the process ended with status 3; its last line: oh (all"),
        ("import os; os.kill(os.getpid(), 9)", "signal", "the process was ended by signal 9; it printed nothing"),
        ("pass", "result", "it printed no JSON object that begins a line of its standard output; it printed nothing"),
        ("print('hello'); print('a b')", "result", "its last line: a b (all of them: "),
        ("print('[1]')", "result", "it printed no JSON object"),
        ("print('{}')", "result", 'the result must be an object with "schema": 1; its last line: {} (all'),
        ('print(\'{"schema": 1, "metrix": {}}\')', "result", "unknown key 'metrix'"),
        ('print(\'{"schema": 1, "metrics": {"x": {"value": NaN, "unit": "s"}}}\')', "result", "is no finite number"),
        ("print('\\x1b[31mred')", "result", "its last line: \\x1b[31mred (all"),
        ("import sys; sys.stderr.write('x' * 5000); sys.exit(1)", "status", f"its last line: {'x' * 300} (all"),
    ],
)
def test_what_goes_wrong_is_a_failure_in_words(code: str, kind: str, message: str, tmp_path: Path) -> None:
    seen = observe(tmp_path, code)
    assert failure(seen).kind == kind
    assert message in failure(seen).message
    assert not failure(seen).forbidden
    assert seen.log == str(tmp_path / "job" / "log.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "/output.json is no JSON: Expecting property name"),
        ("[]", "the result must be an object, and is an array"),
    ],
)
def test_a_file_that_is_no_result(text: str, message: str, tmp_path: Path) -> None:
    seen = observe(tmp_path, f"import sys; open(sys.argv[1], 'w').write({text!r})", "{result}")
    assert message in failure(seen).message


def test_a_result_beyond_all_bounds_is_not_read(tmp_path: Path) -> None:
    seen = observe(tmp_path, "import os, sys; open(sys.argv[1], 'w').truncate(1 << 40)", "{result}")
    assert f"has more than {MOST} bytes" in failure(seen).message


def test_a_pipe_in_the_place_of_the_result_keeps_nobody_waiting(tmp_path: Path) -> None:
    seen = observe(tmp_path, "import os, sys; os.mkfifo(sys.argv[1])", "{result}")
    assert "not a regular file" in failure(seen).message


def test_what_was_done_before_the_end_is_kept(tmp_path: Path) -> None:
    seen = observe(tmp_path, f"import sys; print({GOOD!r}); sys.exit('broken')")
    assert seen.metrics == SEEN
    assert failure(seen).message.startswith("the process ended with status 1; its last line: broken (all")


def test_a_failure_that_the_program_tells_comes_before_its_status(tmp_path: Path) -> None:
    told = json.dumps(Observation(failure=Failure("RuntimeError", "compiled", forbidden=True)).to_json())
    seen = observe(tmp_path, f"import sys; print({told!r}); sys.exit(1)")
    assert failure(seen) == Failure("RuntimeError", "compiled", True)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


CHILD = "import subprocess, sys; c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"


def test_one_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    code = f"{CHILD} open('pid', 'w').write(str(c.pid)); print('waiting', flush=True); c.wait()"
    seen = observe(tmp_path, code, timeout=2.0)
    assert failure(seen).kind == "timeout"
    assert failure(seen).message.startswith("the process did not end within 2 s and was ended; its last line: waiting")
    assert gone(int((tmp_path / "pid").read_text()))


def test_children_that_it_leaves_are_ended(tmp_path: Path) -> None:
    seen = observe(tmp_path, f"{CHILD} open('pid', 'w').write(str(c.pid)); print({GOOD!r})")
    assert seen.failure is None
    assert gone(int((tmp_path / "pid").read_text()))


def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    def interrupted(text: str) -> None:
        raise KeyboardInterrupt

    code = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    with pytest.raises(KeyboardInterrupt):
        engine_of("command").observe(job(tmp_path, arm(command=("{python}", "-c", code))), interrupted)
    assert gone(int((tmp_path / "pid").read_text()))


def test_ticks_tell_the_progress_that_it_writes(tmp_path: Path) -> None:
    code = (
        "import json, os, time; told = json.load(open(os.environ['PATCHKIT_JOB']));"
        f"time.sleep(1.5); open(told['progress'], 'w').write('main 2 of 3\\x1b\\n'); time.sleep(1.2); print({GOOD!r})"
    )
    ticks: list[str] = []
    observe(tmp_path, code, ticks=ticks)
    assert ticks == ["running", "main 2 of 3\\x1b"]


def test_the_log_grows_while_it_runs(tmp_path: Path) -> None:
    logs: list[str] = []
    code = (
        "import time; print('one', flush=True); print('tw', end='', flush=True); time.sleep(1.7);"
        f"print('o'); print({GOOD!r})"
    )
    seen = engine_of("command").observe(
        job(tmp_path, arm(command=("{python}", "-c", code))),
        lambda text: logs.append((tmp_path / "job" / "log.txt").read_text()),
    )
    assert seen.metrics == SEEN
    assert logs == ["one\n"]
    assert (tmp_path / "job" / "log.txt").read_text() == f"one\ntwo\n{GOOD}\n"


def test_standard_input_is_empty(tmp_path: Path) -> None:
    assert observe(tmp_path, f"import sys; sys.stdin.read() or print({GOOD!r})").metrics == SEEN


def test_much_output_is_not_held(tmp_path: Path) -> None:
    code = f"import sys\nfor _ in range(3000): sys.stdout.write('y' * 9999 + '\\n')\nprint({GOOD!r})"
    seen = observe(tmp_path, code)
    assert seen.metrics == SEEN
    assert (tmp_path / "job" / "log.txt").stat().st_size == 3000 * 10_000 + len(GOOD) + 1


def test_a_program_of_the_recipe_s_folder(tmp_path: Path) -> None:
    program = tmp_path / "bench"
    program.write_text(f"#!/bin/sh\necho '{GOOD}'\n")
    program.chmod(0o755)
    which = arm(command=("./bench",))
    assert engine_of("command").check(recipe(tmp_path, which), job(tmp_path, which).site) == ()
    assert engine_of("command").observe(job(tmp_path, which), print).metrics == SEEN


def test_a_program_that_is_gone_by_then(tmp_path: Path) -> None:
    seen = engine_of("command").observe(job(tmp_path, arm(command=("./bench",))), print)
    assert failure(seen) == Failure("start", "./bench cannot be started: No such file or directory")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ((), "the engine `command`, treatment: no command is given"),
        (("no-such-bench",), "the engine `command`, treatment: there is no program no-such-bench"),
        (("./bench",), "the engine `command`, treatment: there is no program ./bench"),
    ],
)
def test_check_refuses_what_cannot_be_started(command: tuple[str, ...], message: str, tmp_path: Path) -> None:
    which = arm(command=command)
    with pytest.raises(UsageError) as caught:
        Command().check(recipe(tmp_path, which), job(tmp_path, which).site)
    assert (caught.value.message, caught.value.code) == (message, "no-command")


def test_check_refuses_the_python_of_a_bare_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        Command().check(recipe(tmp_path, arm(command=("{python}",))), bare_site(tmp_path))
    assert (caught.value.message, caught.value.code) == (
        "test site is a folder without an interpreter, and an engine needs one to run in",
        "no-interpreter",
    )


def test_it_cannot_forbid() -> None:
    assert not Command().can_forbid()
