"""What is wrong with a recipe: all of it at once, each with its line, its key and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.errors import PatchFileError
from patchkit.model.load_recipe import load_recipe, parse_recipe

TOP = 'schema = 1\nname = "r"\n'  # lines 1 and 2
VLLM = TOP + 'patches = ["p"]\n[workload]\nprompts = ["a"]\n[engine]\nkind = "vllm"\nmodel = "m"\n'  # lines 1 to 8
COMMAND = TOP + '[engine]\nkind = "command"\ncommand = ["a"]\n[treatment.engine]\ncommand = ["b"]\n'  # lines 1 to 7


def refusal(text: str, path: str | None = "recipes/r.toml") -> PatchFileError:
    with pytest.raises(PatchFileError) as caught:
        parse_recipe(text.encode(), path)
    assert caught.value.exit_status == 2
    return caught.value


def lines(text: str) -> list[str]:
    return [row.removeprefix("recipes/r.toml") for row in refusal(text).message.split("\n")]


def test_all_problems_at_once_in_the_order_of_the_file() -> None:
    assert lines(
        'schema = 1\nname = "r"\npatchs = ["p"]\nmodel = "m"\n[workload]\nprompts = []\nmax_token = 5\n'
        'temperature = "hot"\n[engine]\nkind = "vlm"\nenv = { A = 1, "B C" = "x" }\n[protocol]\npairs_min = 1\n'
        'pairs_max = 21\n[gates]\nthroughputs = { min_ratio = 1 }\ntokens = "same"\nrecompiles = -1\n'
        "[[evidence]]\ncount = '0+'\n"
    ) == [
        ':3: unknown key "patchs" (did you mean "patches"?)',
        ':4: unknown key "model": it belongs in [engine]',
        ":6: workload: prompts: must not be empty",
        ':7: workload: unknown key "max_token" (did you mean "max_tokens"?)',
        ':8: workload: temperature: expected a number or "default", found a string',
        ':10: engine: kind: must be "vllm" or "openai" or "command" or "tpu-cpu-rig", '
        'found "vlm" (did you mean "vllm"?)',
        ':11: engine.env: A: expected a string, found an integer: write it in quotes, "1"',
        ':11: engine.env: key "B C": expected a name that matches ^[A-Za-z_][A-Za-z0-9_]*$',
        ":13: protocol: pairs_min: must be at least 2, found 1",
        ":14: protocol: pairs_max: must be at most 20, found 21",
        ':16: gates: unknown key "throughputs" (did you mean "throughput"?)',
        ':17: gates: tokens: must be "identical" or "count" or "any", found "same"',
        ":18: gates: recompiles: must be at least 0, found -1",
        ':19: evidence 1: required key "log" is missing',
        ':20: evidence 1: count: expected an integer or a string such as "1+", found "0+"',
    ]


def test_the_top() -> None:
    assert lines("") == [
        ': required key "schema" is missing',
        ': required key "name" is missing',
        ': required key "engine" is missing',
    ]
    assert lines(VLLM.replace('"r"', '"s"')) == [':2: name: "s" is not the file\'s own name "r" (did you mean "r"?)']
    error = refusal(VLLM.replace("schema = 1", "schema = 2"))
    assert error.message.endswith("the file is of schema 2, this patchkit reads schema 1: this patchkit is too old")
    assert lines(TOP + '[target]\nrequirement = "x"\n') == [
        ":3: this is a patch file, not a recipe: it has a [target] and no [engine]"
    ]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PatchFileError, match="cannot be read: No such file"):
        load_recipe(str(tmp_path / "r.toml"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (VLLM + "tensor_parallel_size = 0\n", ":9: engine: tensor_parallel_size: must be at least 1, found 0"),
        (VLLM + "timeout = 0\n", ":9: engine: timeout: must be more than 0, found 0"),
        (VLLM + "timeout = inf\n", ":9: engine: timeout: must be finite, found inf"),
        (
            VLLM + "[engine.options]\nday = 2026-01-01\n",
            ":10: engine.options: day: expected a value of JSON, found a date",
        ),
        (
            VLLM + "[engine.options]\nx = [[nan]]\n",
            ":10: engine.options: x: expected a value of JSON, found the number nan",
        ),
        (
            VLLM + "[engine.speculative]\nn = 1.5\n",
            ":10: engine.speculative: n: expected a string or an integer, found a float",
        ),
        (
            VLLM + '[engine.env]\nA = "\\u0000"\n',
            ":10: engine.env: A: holds U+0000, which no program can be given",
        ),
        (
            VLLM + "[[engine.env]]\n",
            ":9: engine: env: expected a table, found an array of tables: write [engine.env], not [[engine.env]]",
        ),
        (
            VLLM + "[treatment.engine]\nkind = 'vllm'\n",
            ':10: treatment.engine: unknown key "kind": it belongs in [engine]',
        ),
        (
            VLLM + "[treatment]\npatches = ['q']\n",
            ":10: treatment: patches: patches stands at the top already: say it in one place",
        ),
        (
            VLLM + "[protocol]\npairs_min = 6\n",
            ":10: protocol: pairs_min: must be at most pairs_max, which is 5, found 6",
        ),
        (
            VLLM + "[protocol]\npairs_max = 2\n",
            ":10: protocol: pairs_max: must be at least pairs_min, which is 3, found 2",
        ),
        (VLLM + "[figures]\nttft = {}\n", ":10: figures.ttft: needs baseline, treatment or ratio"),
        (
            VLLM + "[figures.ttft]\nbaseline = 1\ntreatment = 2\nratio = 2\n",
            ":12: figures.ttft.ratio: baseline and treatment say it already",
        ),
        (VLLM + "[figures]\nttft = 1\n", ":10: figures: ttft: expected a table, found an integer"),
        (
            VLLM + "[[point]]\nlabel = 'x'\n[[point]]\nlabel = 'x'\n",
            ':12: point 2: label: "x" is the label of point 1 already',
        ),
        (VLLM + "[[point]]\n", ':9: point 1: required key "label" is missing'),
    ],
)
def test_single_values(text: str, said: str) -> None:
    assert lines(text) == [said]


def test_two_points_under_one_header() -> None:
    error = refusal(VLLM + "[[point]]\nlabel = 'x'\nlabel = 'y'\n")
    assert error.message == "recipes/r.toml:11: point 1: label: is set twice, first on line 10"
    assert error.hint == "a new [[point]] header begins the next point"


def test_figures_beside_points() -> None:
    text = (
        VLLM.replace("patches", 'source = "s"\npatches')
        + "[figures]\nttft = { baseline = 1 }\n[[point]]\nlabel = 'x'\n"
    )
    assert lines(text) == [":10: figures: with [[point]], figures stand in each point"]


# -- kinds -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ('kind = "vllm"\n', ':6: engine: kind "vllm" needs model'),
        ('kind = "openai"\n', ':6: engine: kind "openai" needs model or url'),
        ('kind = "command"\n', ':6: engine: kind "command" needs command'),
        ('kind = "vllm"\nmodel = "m"\nrig = "r"\n', ':9: engine: rig: has no meaning with kind "vllm"'),
        ('kind = "vllm"\nmodel = "m"\ncommand = ["a"]\n', ':9: engine: command: has no meaning with kind "vllm"'),
        ('kind = "tpu-cpu-rig"\nmodel = "m"\n', ':8: engine: model: has no meaning with kind "tpu-cpu-rig"'),
        ('kind = "openai"\nmodel = "m"\nreads = "json"\n', ':9: engine: reads: has no meaning with kind "openai"'),
        (
            'kind = "command"\ncommand = ["a"]\nurl = "http://x"\n',
            ':9: engine: url: has no meaning with kind "command"',
        ),
    ],
)
def test_what_a_kind_needs_and_refuses(engine: str, said: str) -> None:
    assert lines(TOP + 'patches = ["p"]\n[workload]\nprompts = ["a"]\n[engine]\n' + engine) == [said]


def test_a_server_that_runs_already() -> None:
    text = TOP + '[workload]\nprompts = ["a"]\n[engine]\nkind = "openai"\nurl = "http://x"\nenv = { A = "1" }\n'
    assert lines(text) == [":8: engine: env: has no meaning with url: that server runs already"]
    own = 'options = { endpoint = "chat"%s }\n[treatment.workload]\nconcurrency = 1\n'
    text = text.partition("env = ")[0] + own
    assert parse_recipe((text % "").encode(), None).name  # which endpoint is asked is the client's
    assert lines(text % ", seed = 1") == [":8: engine: options: has no meaning with url: that server runs already"]
    text = TOP + 'patches = ["p"]\n[workload]\nprompts = ["a"]\n[engine]\nkind = "openai"\nurl = "http://x"\n'
    assert lines(text) == [
        ":3: patches: with url, patches change nothing: that server runs already; leave url out to start one"
    ]
    text += '[treatment.engine]\nurl = "http://y"\n[[evidence]]\nlog = "x"\n'
    assert lines(text.replace('patches = ["p"]\n', "")) == [
        ":10: evidence 1: a server that runs already has no log here: evidence needs one that is started"
    ]


def test_settings_in_the_wrong_place() -> None:
    assert lines(VLLM + "[engine.options]\nmax-num-seqs = 4\nspeculative_config = {}\n") == [
        ":10: engine.options: max-num-seqs: has a key of its own: write it as max_num_seqs in the engine",
        ":11: engine.options: speculative_config: has a key of its own: write it as speculative in the engine",
    ]
    assert lines(VLLM + "[treatment.engine.env]\nVLLM_XLA_CHECK_RECOMPILATION = '1'\nPATCHKIT_JOB = 'x'\n") == [
        ":10: treatment.engine.env: VLLM_XLA_CHECK_RECOMPILATION: is for the preflight alone: "
        "a run in which compilation is forbidden is not timed",
        ":11: treatment.engine.env: PATCHKIT_JOB: is set by rebench itself",
    ]


# -- gates -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("throughput = {}", ":10: gates.throughput: no limit: needs min_ratio, max_ratio, min or max"),
        (
            "throughput = { min_ratio = 1.05 }",
            ":10: gates.throughput: min_ratio: 1.05 is above 1: an equal treatment could not pass; "
            "a gain is told as improved without a gate",
        ),
        (
            "ttft = { max_ratio = 0.9 }",
            ":10: gates.ttft: max_ratio: 0.9 is below 1: an equal treatment could not pass; "
            "a gain is told as improved without a gate",
        ),
        (
            "throughput = { max_ratio = 1.1 }",
            ":10: gates.throughput: max_ratio: throughput is better higher: a loss is limited by min_ratio",
        ),
        (
            "ttft = { min_ratio = 0.9 }",
            ":10: gates.ttft: min_ratio: ttft is better lower: a loss is limited by max_ratio",
        ),
        ("ttft = { min = 2, max = 1 }", ":10: gates.ttft: min: must be at most max, which is 1.0, found 2.0"),
        ("ttft = { min_ratio = 0 }", ":10: gates.ttft: min_ratio: must be more than 0, found 0"),
        ("min_ratio = 0.9", ':10: gates: unknown key "min_ratio": it belongs in [gates.METRIC]'),
        ("ttft = 1.1", ":10: gates: ttft: expected a table, found a float"),
    ],
)
def test_gates_that_say_nothing_or_nonsense(gate: str, said: str) -> None:
    assert lines(VLLM + "[gates]\n" + gate + "\n") == [said]


def test_a_metric_of_ones_own_has_one_direction() -> None:
    text = COMMAND.replace("[treatment", 'reads = "json"\nmetrics = { mine = "a.b" }\n[treatment')
    gates = "[gates]\nmine = { min_ratio = 0.9, max_ratio = 1.1 }\n"
    assert lines(text + gates) == [
        ":11: gates.mine: max_ratio: with min_ratio, it is not known which way is better: keep one"
    ]
    assert lines(text + "[gates]\nttft = { max_ratio = 1.1 }\n") == [
        ':11: gates: ttft: nothing measures it: a result of format "json" has none'
    ]
    assert lines(text) == [':6: reads "json" needs [gates]: neither throughput nor ttft is measured']


# -- contradictions ----------------------------------------------------------------------------------------------------


def test_no_difference_between_the_arms() -> None:
    said = "no difference between baseline and treatment: name patches, or write settings in"
    assert lines(VLLM.replace('patches = ["p"]\n', "")) == [f": {said} [treatment.engine] or [treatment.workload]"]
    assert lines(VLLM + '[baseline]\npatches = ["p"]\n')[0].startswith(f": {said}")
    text = VLLM + "[[point]]\nlabel = 'x'\n[[point]]\nlabel = 'y'\nbaseline = { patches = ['p'] }\n"
    assert lines(text) == [f":11: point 2: {said} [treatment.engine] or [treatment.workload]"]


def test_a_profiler_beside_gates_on_time() -> None:
    said = "with the profiler on no time is believed, but throughput and ttft is gated: leave one of them out"
    assert lines(VLLM + "profile = true\n") == [f":9: engine: profile: {said}"]
    assert parse_recipe((VLLM + "profile = true\n[gates]\nmodel_memory = { max = 5 }\n").encode(), None)


@pytest.mark.parametrize("bench", ["vllm-throughput", "vllm-latency"])
def test_a_greedy_recipe_read_from_a_bench_that_samples(bench: str) -> None:
    text = COMMAND.replace("[treatment", f'reads = "{bench}"\n[treatment') + "[gates]\nseconds = { min = 1 }\n"
    (said,) = lines(text)
    assert said.startswith(f':6: engine: reads: "{bench}" samples at temperature 1.0 whatever it is told')
    warm = text + "[workload]\ntemperature = 1.0\n"
    assert parse_recipe(warm.encode(), None).gates.tokens == "any"
    (said,) = lines(warm.partition("[gates]")[0] + "[workload]\ntemperature = 1.0\n")
    assert said == f':6: reads "{bench}" needs [gates]: neither throughput nor ttft is measured'


def test_identical_tokens_of_what_cannot_be_identical() -> None:
    default = 'tokens is "identical" by default, which cannot hold'
    lead = '"identical" cannot hold'
    out = 'write tokens = "count" in [gates]'
    sampled = VLLM.replace('["a"]\n', '["a"]\ntemperature = 0.7\n')
    assert lines(sampled) == [
        f": {default}: the baseline samples without a seed; {out}, or set seed",
        f": {default}: the treatment samples without a seed; {out}, or set seed",
    ]
    assert parse_recipe(sampled.replace("0.7", "0.7\nseed = 1").encode(), None)
    assert parse_recipe((sampled + '[gates]\ntokens = "count"\n').encode(), None)
    longer = VLLM + "[treatment.workload]\nmax_tokens = 64\n[gates]\ntokens = 'identical'\n"
    assert lines(longer) == [f":12: gates: tokens: {lead}: the arms differ in max_tokens; {out}"]
    told = COMMAND.replace("[treatment", 'reads = "guidellm"\n[treatment') + "[gates]\ntokens = 'identical'\n"
    assert lines(told) == [f':10: gates: tokens: {lead}: a result of format "guidellm" does not tell them; {out}']


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("top_p = 0.9\n", ":6: workload: top_p: has no meaning at temperature 0, which is greedy"),
        ("top_k = 4\n", ":6: workload: top_k: has no meaning at temperature 0, which is greedy"),
        (
            "concurrency = 4\n",
            ':6: workload: concurrency: kind "vllm" takes all requests at once: only a server or a command can be told',
        ),
        (
            "request_rate = 4\n",
            ':6: workload: request_rate: kind "vllm" takes all requests at once: '
            "only a server or a command can be told",
        ),
    ],
)
def test_workloads_that_contradict_themselves(more: str, said: str) -> None:
    assert lines(VLLM.replace('["a"]\n', f'["a"]\n{more}')) == [said]


def test_what_is_missing_for_what_is_asked() -> None:
    assert lines(VLLM.replace('prompts = ["a"]', "max_tokens = 4")) == [":4: workload: needs prompts"]
    assert lines(VLLM.replace("[engine]", "max_tokens = 1\n[engine]") + "[gates]\nitl = { max = 1 }\n") == [
        ":11: gates: itl: needs max_tokens of 2 or more: it is the time between tokens"
    ]
    assert lines(VLLM + "[figures]\nttft = { baseline = 1 }\n") == [
        ":9: figures: need `source` at the top: whose are they?"
    ]
    assert lines(COMMAND.replace("[treatment", 'reads = "json"\n[treatment') + "[gates]\n") == [
        ':6: engine: reads: format "json" needs [engine.metrics]'
    ]
    assert lines(COMMAND.replace("[treatment", 'metrics = { a = "b" }\n[treatment')) == [
        ':6: engine: metrics: has no meaning with reads = "patchkit"'
    ]
