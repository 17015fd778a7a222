"""The engine against a server that misbehaves; what a real one does is in tests/rig."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.jobs import arm, job, recipe
from support.scripted import heed_signals
from support.sites import bare_site

from patchkit.bench.engines import engine_of
from patchkit.bench.observation import Observation
from patchkit.bench.served.engine import Openai
from patchkit.bench.served.server import free_port, get
from patchkit.errors import GuardError, UsageError
from patchkit.model.recipe import Workload
from patchkit.site.environment import resolve

MOCK = Path(__file__).parents[2] / "support" / "mockserver"
WORK = Workload(("one", "three"), batch_mult=3, max_tokens=4, repeats=2)


def observe(
    folder: Path,
    mode: str = "",
    work: Workload = WORK,
    *,
    forbid: bool = False,
    profile: bool = False,
    ticks: list[str] | None = None,
    **engine: Any,
) -> Observation:
    """A mock server in that mode, started, measured and ended as a real one is."""
    which = arm("openai", workload=work, **{"model": "tiny", "timeout": 60.0, **engine})
    env = {"PYTHONPATH": str(MOCK), "MOCK": mode, "MOCK_FOLDER": str(folder)}
    made = Openai().observe(
        job(folder, which, env=env, forbid=forbid, profile=profile), (ticks if ticks is not None else []).append
    )
    assert not alive(folder / "started")
    return made


def alive(file: Path) -> bool:
    """Whether the process whose number a file has is still there."""
    if not file.exists():
        return False
    try:
        os.kill(int(file.read_text()), 0)
    except ProcessLookupError:
        return False
    return True


def asked(folder: Path) -> list[dict[str, Any]]:
    """The requests that came, those of the prompt `one` first."""
    found = [json.loads(line) for line in (folder / "asked.jsonl").read_text().splitlines()]
    return sorted(found, key=lambda one: "three" in json.dumps(one))


def test_a_good_server(tmp_path: Path) -> None:
    ticks: list[str] = []
    seen = observe(tmp_path, "slow-start=1.5", ticks=ticks)
    assert seen.failure is None
    assert seen.notes == ()
    assert [(one.name, one.repeat, one.requests, one.tokens) for one in seen.phases] == [
        ("warm-up", 0, 6, 24),
        ("main", 0, 6, 24),
        ("main", 1, 6, 24),
    ]
    assert seen.tokens is not None
    assert (seen.tokens.asked, seen.tokens.came, seen.tokens.failed_requests) == (24, 24, 0)
    # By hand: `one` has three letters and `three` five, and tokens count up from that.
    ids = [[3, 4, 5, 6], [5, 6, 7, 8]] * 3
    assert seen.tokens.sha256 == hashlib.sha256(json.dumps(ids).encode()).hexdigest()
    assert seen.version_lines == ("Initializing a V1 LLM engine (v0)",)
    assert seen.compilations == {}
    assert seen.prefix_cache_hit_rate == pytest.approx(0.4)
    assert seen.metrics["init"].value == 1.5
    timed = {"throughput", "throughput_first", "request_throughput", "ttft", "ttft_first", "tpot", "itl", "e2el"}
    assert timed <= set(seen.metrics)
    assert {"ttft_p90", "ttft_p99", "tpot_p99", "itl_p90", "e2el_p99"} <= set(seen.metrics)
    assert len(seen.metrics["throughput"].samples) == 1
    assert any(tick.startswith("starting, ") for tick in ticks)
    assert seen.log is not None
    assert "init engine" in Path(seen.log).read_text()


def test_everything_that_decides_tokens_is_asked_for(tmp_path: Path) -> None:
    work = WORK._replace(temperature=0.5, top_p=0.9, top_k=7, seed=3, logprobs=2, repeats=1)
    observe(tmp_path, work=work)
    requests = asked(tmp_path)
    assert len(requests) == 12
    assert requests[0] == {
        "model": "tiny",
        "max_tokens": 4,
        "stream": True,
        "stream_options": {"include_usage": True},
        "prompt": "one",
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 7,
        "logprobs": 2,
        "ignore_eos": True,
        "return_token_ids": True,
    }


def test_what_is_none_is_left_to_the_server(tmp_path: Path) -> None:
    observe(tmp_path, work=WORK._replace(temperature=None, ignore_eos=False, repeats=1))
    assert set(asked(tmp_path)[0]) == {"model", "max_tokens", "stream", "stream_options", "prompt", "return_token_ids"}


def test_chat_begins_with_an_empty_piece_that_is_no_token(tmp_path: Path) -> None:
    seen = observe(tmp_path, "first-delay=0.3", options={"endpoint": "chat"})
    assert seen.failure is None
    # The role came at once, the first token not before the delay.
    assert seen.metrics["ttft"].value >= 0.3
    assert asked(tmp_path)[0]["messages"] == [{"role": "user", "content": "one"}]
    empty = observe(tmp_path, "empty-first first-delay=0.3")
    assert empty.metrics["ttft"].value >= 0.3


def test_pieces_of_several_tokens_are_counted_by_the_server(tmp_path: Path) -> None:
    seen = observe(tmp_path, "piece=2")
    assert seen.failure is None
    assert seen.tokens is not None
    assert seen.tokens.came == 24
    # Of four tokens in two pieces, the second of the first piece has no time of its own.
    assert "itl" not in seen.metrics
    assert any(note.startswith("no time between tokens") for note in seen.notes)


def test_without_ids_texts_are_compared(tmp_path: Path) -> None:
    seen = observe(tmp_path, "no-ids no-metrics no-reset")
    assert seen.failure is None
    assert "the server gives no token ids, so that texts are compared" in seen.notes
    assert "the server has no /metrics, so the prefix cache's hit rate is unknown" in seen.notes
    assert any(note.startswith("the prefix cache could not be emptied") for note in seen.notes)
    assert seen.prefix_cache_hit_rate is None
    assert "itl" in seen.metrics


def test_a_kept_open_socket_is_no_wait(tmp_path: Path) -> None:
    seen = observe(tmp_path, "open")
    assert seen.failure is None
    assert seen.tokens is not None
    assert seen.tokens.came == 24


def test_a_server_that_hangs_up_after_each_answer(tmp_path: Path) -> None:
    """Without having said so: the next request on that connection gets nothing, and is sent anew."""
    seen = observe(tmp_path, "hang-up", work=WORK._replace(concurrency=2))
    assert seen.failure is None
    assert seen.tokens is not None
    assert (seen.tokens.came, seen.tokens.failed_requests) == (24, 0)


def test_fewer_tokens_than_asked(tmp_path: Path) -> None:
    seen = observe(tmp_path, "fewer=1")
    assert seen.tokens is not None
    assert (seen.tokens.asked, seen.tokens.came) == (24, 18)


def test_tokens_that_differ_between_repeats_have_no_hash(tmp_path: Path) -> None:
    seen = observe(tmp_path, "random")
    assert seen.tokens is not None
    assert seen.tokens.sha256 is None
    assert "the tokens of the 2 repeats are not the same, so there is no hash of them" in seen.notes


@pytest.mark.parametrize(
    ("mode", "kind", "words"),
    [
        ("die", "died", "the server ended with status 3 before it was ready: ValueError: no such device (all of it: "),
        ("die-at=1", "requests", "; the server: ValueError: the engine gave up"),
        ("status=500", "requests", "6 x HTTP 500: out of luck"),
        ("status=503", "requests", "6 x HTTP 503: out of luck"),
        ("half", "requests", "6 x the stream ended early, after 3 pieces"),
        ("garbage", "requests", "6 x the stream has what is no JSON: '{not json'"),
        ("error-in-stream", "requests", "6 x the server's error in the stream: the engine died"),
        ("no-stream", "requests", "6 x the answer is no stream of events but application/json"),
        ("fewer=4", "requests", "6 x the stream has no token"),
        ("no-usage no-ids", "no-usage", "stream_options.include_usage"),
    ],
)
def test_what_goes_wrong_is_a_failure_in_words(mode: str, kind: str, words: str, tmp_path: Path) -> None:
    seen = observe(tmp_path, mode)
    assert seen.failure is not None
    assert (seen.failure.kind, seen.failure.forbidden) == (kind, False)
    assert words in seen.failure.message
    assert seen.log == str(tmp_path / "job" / "log.txt")
    assert "throughput" not in seen.metrics or kind == "no-usage"


def test_a_server_that_does_not_become_ready(tmp_path: Path) -> None:
    failure = observe(tmp_path, "never-ready", timeout=2.0).failure
    assert failure is not None
    assert failure.kind == "not-ready"
    assert "the server was not ready in time" in failure.message


def test_another_server_on_the_port(tmp_path: Path) -> None:
    failure = observe(tmp_path, "wrong-model", timeout=8.0).failure
    assert failure is not None
    assert failure.kind == "not-ready"
    assert "another server answered, with the models other" in failure.message


def test_a_stream_that_stalls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchkit.bench.served.engine.IDLE", 2.0)
    failure = observe(tmp_path, "stall").failure
    assert failure is not None
    assert failure.kind == "requests"
    assert "6 x nothing came for 2 s" in failure.message


def test_some_requests_that_fail_are_told(tmp_path: Path) -> None:
    seen = observe(tmp_path, "status-every=4")
    assert seen.failure is None
    assert seen.tokens is not None
    assert seen.tokens.failed_requests == 4
    assert seen.notes[0] == "warm-up: 1 request failed: HTTP 500: out of luck"


def test_a_port_that_somebody_took_meanwhile(tmp_path: Path) -> None:
    assert observe(tmp_path, "port-taken").failure is None


def test_compilations_are_told_by_phase(tmp_path: Path) -> None:
    """The eighth request is of the first repeat."""
    seen = observe(tmp_path, "compile-at=8")
    assert seen.compilations == {"jit(sample)": 1}
    assert [one.compilations for one in seen.phases] == [{}, {"jit(sample)": 1}, {}]
    assert seen.failure is None


def test_a_forbidden_compilation(tmp_path: Path) -> None:
    seen = observe(tmp_path, "compile-at=8", forbid=True)
    assert seen.failure is not None
    assert seen.failure.forbidden
    assert [one.name for one in seen.phases] == ["warm-up", "main"]
    assert "ttft" not in seen.metrics
    assert "init" in seen.metrics


def test_a_traced_job_is_not_timed(tmp_path: Path) -> None:
    seen = observe(tmp_path, profile=True)
    assert seen.failure is None
    assert seen.profiler
    assert [one.name for one in seen.phases] == ["warm-up", "main"]
    assert "throughput" not in seen.metrics


def test_a_server_that_makes_no_trace(tmp_path: Path) -> None:
    failure = observe(tmp_path, "no-profile", profile=True).failure
    assert failure is not None
    assert "/start_profile is answered with HTTP 404, so there is no trace" in failure.message


def test_no_descendant_is_left(tmp_path: Path) -> None:
    """One that has left the process group."""
    observe(tmp_path, "child")
    assert (tmp_path / "child").exists()
    assert not alive(tmp_path / "child")


def test_concurrency_and_rate(tmp_path: Path) -> None:
    seen = observe(tmp_path, work=WORK._replace(concurrency=2, request_rate=200.0, repeats=1))
    assert seen.failure is None
    assert [one.requests for one in seen.phases] == [2, 6]


def killed(folder: Path, number: int) -> None:
    """Start the engine in a process of its own, and kill that while its server starts."""
    code = (
        "import sys; from pathlib import Path; sys.path[:0] = sys.argv[2:4]\n"
        "import importlib.util as u\n"
        "s = u.spec_from_file_location('tm', sys.argv[4]); m = u.module_from_spec(s); s.loader.exec_module(m)\n"
        "m.observe(Path(sys.argv[1]), 'never-ready child')\n"
    )
    root = Path(__file__).parents[3]
    words = [sys.executable, "-c", code, str(folder), str(root), str(root / "tests"), __file__]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=heed_signals)
    with ended(process):
        wait_for(lambda: (folder / "child").exists() and alive(folder / "child"))
        process.send_signal(number)
        process.wait(40)
        wait_for(lambda: not alive(folder / "started") and not alive(folder / "child"))


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()


def wait_for(condition: Any) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_patchkit_that_was_stopped(number: int, tmp_path: Path) -> None:
    killed(tmp_path, number)


# --- a given server


@pytest.fixture
def given(tmp_path: Path) -> Iterator[str]:
    port = free_port()
    words = ["serve", "tiny", "--host", "127.0.0.1", "--port", str(port), "--served-model-name", "tiny", "alias"]
    process = subprocess.Popen(
        [sys.executable, "-m", "vllm.entrypoints.cli.main", *words],
        env={**os.environ, "PYTHONPATH": str(MOCK), "MOCK": "not-vllm", "MOCK_FOLDER": str(tmp_path)},
        stderr=subprocess.DEVNULL,
    )
    with ended(process):

        def answers() -> bool:
            try:
                return get(f"http://127.0.0.1:{port}", "/health")[0] == 200
            except OSError:
                return False

        wait_for(answers)
        yield f"http://127.0.0.1:{port}/v1"


def attach(folder: Path, url: str, **engine: Any) -> Observation:
    which = arm("openai", workload=WORK, **{"url": url, "timeout": 60.0, **engine})
    return Openai().observe(job(folder, which), [].append)


def test_a_given_server_is_used_as_it_is(given: str, tmp_path: Path) -> None:
    seen = attach(tmp_path, given, model="alias")
    assert seen.failure is None
    assert seen.tokens is not None
    assert seen.tokens.came == 24
    # Not known to be vLLM: it is not asked for what only vLLM has.
    assert "return_token_ids" not in asked(tmp_path)[0]
    assert asked(tmp_path)[0]["model"] == "alias"
    assert (seen.compilations, seen.versions, seen.log) == (None, {}, None)
    assert alive(tmp_path / "started")


def test_a_given_servers_model(given: str, tmp_path: Path) -> None:
    for model, words in ((None, "no engine.model says which to ask for"), ("else", "else is asked for")):
        failure = attach(tmp_path, given, model=model).failure
        assert failure is not None
        assert failure.kind == "wrong-model"
        assert f"has the models tiny, alias; {words}" in failure.message


def test_a_given_server_that_is_not_there(tmp_path: Path) -> None:
    failure = attach(tmp_path, "http://user:secret@127.0.0.1:9/v1").failure
    assert failure is not None
    assert failure.kind == "not-ready"
    assert "secret" not in failure.message


# --- what is refused


def checked(*arms: Any, folder: Path) -> list[str]:
    return list(Openai().check(recipe(folder, *arms), resolve(None, None, {})))


def refused(*arms: Any, folder: Path) -> UsageError:
    with pytest.raises(UsageError) as caught:
        checked(*arms, folder=folder)
    return caught.value


def test_patches_cannot_be_switched_in_a_given_server(tmp_path: Path) -> None:
    which = arm("openai", url="http://127.0.0.1:1")._replace(patches=("logits-greedy",))
    error = refused(which, folder=tmp_path)
    assert error.code == "served"
    assert "patches cannot be switched in it" in error.message


def test_settings_do_not_reach_a_given_server(tmp_path: Path) -> None:
    one, other = arm("openai", url="http://a:1"), arm("openai", url="http://a:1", max_num_seqs=4)
    assert "differ in settings" in refused(one, other, folder=tmp_path).message
    more = arm("openai", url="http://b:1", workload=WORK, options={"endpoint": "chat"})
    assert len(checked(one, more, folder=tmp_path)) == 2


def test_a_workload_without_prompts(tmp_path: Path) -> None:
    which = arm("openai", url="http://a:1", workload=Workload())
    assert "there is nothing to ask" in refused(which, folder=tmp_path).message


def test_a_model_is_needed_to_serve(tmp_path: Path) -> None:
    assert "no model to serve" in refused(arm("openai"), folder=tmp_path).message


def test_a_site_without_vllm(tmp_path: Path) -> None:
    with pytest.raises(GuardError, match="vLLM is not installed"):
        checked(arm("openai", model="tiny"), folder=tmp_path)


@pytest.mark.parametrize("name", ["port", "served-model-name", "api_key"])
def test_options_that_are_ours(name: str, tmp_path: Path) -> None:
    error = refused(arm("openai", model="tiny", options={name: 1}), folder=tmp_path)
    assert error.code == "serve-option"


def test_an_endpoint_that_is_none(tmp_path: Path) -> None:
    error = refused(arm("openai", model="tiny", options={"endpoint": "embeddings"}), folder=tmp_path)
    assert error.code == "serve-option"


def test_it_is_the_engine_of_its_kind() -> None:
    assert isinstance(engine_of("openai"), Openai)


def test_only_a_server_of_ours_can_be_forbidden_to_compile(tmp_path: Path) -> None:
    engine = Openai()
    assert engine.can_forbid()
    engine.check(recipe(tmp_path, arm("openai", url="http://a:1")), bare_site(tmp_path))
    assert not engine.can_forbid()
