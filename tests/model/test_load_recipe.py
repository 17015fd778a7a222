"""From TOML to a recipe: defaults, layers, gates, figures, evidence."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, strategies
from properties.effort import effort

from patchkit.errors import PatchFileError
from patchkit.model.load_recipe import load_recipe, parse_recipe
from patchkit.model.recipe import Arm, Economics, Engine, Figure, Gate, Gates, LogLine, Protocol, Recipe, Workload
from patchkit.model.recipe_examples import RECIPES

DESIGN = """
schema = 1
name = "logits-greedy-b512"
patches = ["logits-greedy"]

[workload]
prompts = ["...", "...", "...", "..."]     # repeated `batch_mult` times
batch_mult = 128
max_tokens = 128
temperature = 0.0

[engine]
kind = "vllm"                # vllm | openai | command | tpu-cpu-rig
model = "google/gemma-2b"
max_num_seqs = 512
[engine.env]                 # set in both arms

[protocol]
pairs_min = 3
pairs_max = 5
[gates]
throughput = { min_ratio = 0.97 }
ttft       = { max_ratio = 1.10 }
tokens     = "identical"
recompiles = 0               # compilations after warm-up, in the treatment arm
probes     = "required"
[economics]
chip_watts = 197
price_per_hour = 1.20
"""
RIG = 'schema = 1\nname = "r"\npatches = ["p"]\n[workload]\nprompts = ["a"]\n[engine]\nkind = "tpu-cpu-rig"\n'


def parse(text: str) -> Recipe:
    return parse_recipe(text.encode(), None)


def test_the_recipe_of_the_design_loads_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "logits-greedy-b512.toml"
    path.write_text(DESIGN, encoding="utf-8")
    recipe = load_recipe(str(path))
    workload = Workload(prompts=("...",) * 4, batch_mult=128, max_tokens=128, temperature=0.0)
    engine = Engine("vllm", model="google/gemma-2b", max_num_seqs=512)
    (point,) = recipe.points
    assert workload.requests == 512
    assert point.label == ""
    assert point.baseline == Arm("baseline", (), workload, engine)
    assert point.treatment == Arm("treatment", ("logits-greedy",), workload, engine)
    assert recipe.gates == Gates(
        (Gate("throughput", min_ratio=0.97), Gate("ttft", max_ratio=1.1)), "identical", 0, "required"
    )
    assert recipe.protocol == Protocol()
    assert recipe.economics == Economics(197.0, 1.2, 1)
    assert recipe.patches == ("logits-greedy",)
    assert recipe.summary == "logits greedy b512"
    assert (recipe.path, recipe.data) == (str(path), DESIGN.encode())
    assert recipe.digest == hashlib.sha256(DESIGN.encode()).hexdigest()


def test_defaults_are_those_of_the_types() -> None:
    recipe = parse(RIG)
    assert recipe.points[0].treatment.workload == Workload(prompts=("a",))
    assert recipe.points[0].treatment.engine == Engine("tpu-cpu-rig")
    assert recipe.protocol == Protocol()
    assert recipe.economics == Economics()
    assert recipe.gates == Gates((Gate("throughput", min_ratio=0.97), Gate("ttft", max_ratio=1.1)))
    assert (recipe.evidence, recipe.links, recipe.tags, recipe.source, recipe.description) == ((), (), (), None, "")


@pytest.mark.parametrize("text", RECIPES)
def test_the_examples_load(text: str) -> None:
    assert parse(text).points


def test_every_setting_of_a_workload_and_an_engine() -> None:
    recipe = parse(
        'schema = 1\nname = "r"\n[workload]\nprompts = ["a", "b"]\nbatch_mult = 3\nmax_tokens = 7\ntemperature = 1\n'
        "top_p = 0.5\ntop_k = -1\nseed = 0\nlogprobs = 2\nignore_eos = false\nrepeats = 1\nconcurrency = 4\n"
        'request_rate = 2\n[engine]\nkind = "command"\nmodel = "m"\nmax_num_seqs = 8\nmax_model_len = 64\n'
        'dtype = "d"\nquantization = "q"\nkv_cache_dtype = "k"\ntensor_parallel_size = 2\n'
        "enable_prefix_caching = false\nasync_scheduling = true\nprofile = false\ntransplants = ['t']\n"
        "command = ['c', '{job}']\nresult = 'r.json'\nreads = 'json'\ntimeout = 60\n"
        "[engine.speculative]\nmethod = 'ngram'\nn = 5\n[engine.options]\na = {b = [1, 2.5, true, 'x']}\n"
        "[engine.env]\nA = '1'\nB = ''\n[engine.metrics]\nm = 'a.b'\n[treatment.engine.env]\nC = '3'\n"
        "[gates]\nm = {min_ratio = 1.0, min = 0, max = 9}\n"
    )
    arm = recipe.points[0].treatment
    assert arm.workload == Workload(("a", "b"), 3, 7, 1.0, 0.5, -1, 0, 2, False, 1, 4, 2.0)
    assert isinstance(arm.workload.temperature, float)
    assert arm.engine == Engine(
        *("command", "m", 8, 64, "d", "q", "k", 2, False, True),
        *({"method": "ngram", "n": 5}, {"a": {"b": [1, 2.5, True, "x"]}}, {"A": "1", "B": "", "C": "3"}, False),
        *(("t",), None, None, ("c", "{job}"), "r.json", "json", {"m": "a.b"}, 60.0),
    )
    assert recipe.points[0].baseline.engine.env == {"A": "1", "B": ""}
    assert recipe.gates.metrics == (Gate("m", 1.0, None, 0.0, 9.0),)


def test_the_word_for_the_engines_own_temperature() -> None:
    recipe = parse(
        'schema = 1\nname = "r"\n[workload]\nprompts = ["a"]\n[engine]\nkind = "vllm"\nmodel = "m"\n'
        '[baseline.workload]\ntemperature = "default"\n[gates]\ntokens = "count"\nrecompiles = "any"\nprobes = "any"\n'
    )
    assert recipe.points[0].baseline.workload.temperature is None
    assert recipe.points[0].treatment.workload.temperature == 0.0
    assert recipe.gates == Gates((), "count", None, "any")


LAYERS = """
schema = 1
name = "r"
patches = ["top"]
[workload]
prompts = ["a"]
max_tokens = 1
repeats = 1
[engine]
kind = "vllm"
model = "m"
env = { TOP = "top", ALL = "top" }
[baseline]
patches = ["both"]
workload = { repeats = 2 }
[treatment.engine]
max_num_seqs = 3
env = { ARM = "arm", ALL = "arm" }
[[point]]
label = "one"
workload = { repeats = 3, max_tokens = 4 }
engine = { max_num_seqs = 5, dtype = "x" }
[point.treatment]
patches = ["inner"]
[point.treatment.engine.env]
POINT = "point"
ALL = "inner"
[[point]]
label = "two"
[gates]
tokens = "any"
"""


def test_the_more_particular_place_wins() -> None:
    one, two = parse(LAYERS).points
    assert (one.label, two.label) == ("one", "two")
    # An arm's own setting stays where the point says otherwise for both; an arm of a point has the last word.
    assert one.baseline == Arm(
        "baseline",
        ("both",),
        Workload(("a",), max_tokens=4, repeats=2),
        Engine("vllm", model="m", max_num_seqs=5, dtype="x", env={"TOP": "top", "ALL": "top"}),
    )
    assert one.treatment == Arm(
        "treatment",
        ("inner",),
        Workload(("a",), max_tokens=4, repeats=3),
        Engine(
            *("vllm", "m", 3),
            dtype="x",
            env={"TOP": "top", "ALL": "inner", "ARM": "arm", "POINT": "point"},
        ),
    )
    assert two.baseline.workload == Workload(("a",), max_tokens=1, repeats=2)
    assert two.treatment.patches == ("top",)
    assert two.treatment.engine.env == {"TOP": "top", "ALL": "arm", "ARM": "arm"}
    assert parse(LAYERS).patches == ("inner", "top")


def test_figures_stand_with_their_point() -> None:
    recipe = parse(
        RIG.replace("[workload]", 'source = "s"\n[workload]')
        + "[figures]\nttft = {baseline = 0.187, treatment = 0.995}\nthroughput = {treatment = 8839}\n"
    )
    assert recipe.points[0].figures == (Figure("throughput", None, 8839.0), Figure("ttft", 0.187, 0.995))
    recipe = parse(
        RIG.replace("[workload]", 'source = "s"\n[workload]')
        + '[[point]]\nlabel = "x"\n[point.figures.itl]\nbaseline = 0\n[[point]]\nlabel = "y"\n'
    )
    assert [point.figures for point in recipe.points] == [(Figure("itl", 0.0, None),), ()]


def test_a_ratio_may_be_all_that_was_published() -> None:
    text = RIG.replace("[workload]", 'source = "s"\n[workload]') + "[figures.throughput]\nratio = 1.056\n"
    (figure,) = parse(text).points[0].figures
    assert figure == Figure("throughput", None, None, 1.056)
    assert figure.change() == 1.056
    assert Figure("ttft", 2.0, 3.0).change() == 1.5
    assert Figure("ttft", 2.0, None).change() is None


def test_evidence() -> None:
    recipe = parse(
        RIG + '[[evidence]]\nlog = "x"\n[[evidence]]\nlog = "y"\narm = "treatment"\ncount = "2+"\n'
        '[[evidence]]\nlog = "z"\ncount = 0\n[[evidence]]\nlog = "w"\ncount = 3\n'
    )
    assert recipe.evidence == (
        LogLine("x", None, 1, None),
        LogLine("y", "treatment", 2, None),
        LogLine("z", None, 0, 0),
        LogLine("w", None, 3, 3),
    )


def test_gates_that_a_command_can_measure_are_the_default() -> None:
    command = (
        'schema = 1\nname = "r"\n[engine]\nkind = "command"\ncommand = ["a"]\n[treatment.engine]\ncommand = ["b"]\n'
    )
    assert parse(command).gates.metrics == (Gate("throughput", min_ratio=0.97), Gate("ttft", max_ratio=1.1))
    mapped = command.replace("[treatment", 'reads = "json"\nmetrics = { ttft = "a" }\n[treatment')
    assert parse(mapped).gates == Gates((Gate("ttft", max_ratio=1.1),), "any")
    serve = command.replace("[treatment", 'reads = "vllm-serve"\n[treatment')
    assert parse(serve).gates.tokens == "count"


def test_protocol_and_economics() -> None:
    recipe = parse(
        RIG + "[protocol]\npairs_min = 2\npairs_max = 20\ndiscarded = 0\npreflight = false\npause = 1\n"
        "trip_throughput = 0.5\ntrip_ttft = 3\ntraced = true\n[economics]\nchips = 4\n"
    )
    assert recipe.protocol == Protocol(2, 20, 0, False, 1.0, 0.5, 3.0, True)
    assert recipe.economics == Economics(None, None, 4)


def test_a_byte_order_mark_and_crlf() -> None:
    assert parse_recipe(b"\xef\xbb\xbf" + RIG.replace("\n", "\r\n").encode(), None).name == "r"


# -- whatever the file holds -------------------------------------------------------------------------------------------

_LEAVES = strategies.sampled_from(
    [
        0,
        1,
        -1,
        1.5,
        float("nan"),
        True,
        "",
        "a",
        "vllm",
        "command",
        "tpu-cpu-rig",
        "json",
        "default",
        "identical",
        "any",
    ]
)
_WORDS = strategies.sampled_from(
    [
        *(
            "schema",
            "name",
            "patches",
            "workload",
            "engine",
            "baseline",
            "treatment",
            "point",
            "gates",
            "figures",
            "env",
        ),
        *("protocol", "economics", "evidence", "kind", "model", "prompts", "throughput", "min_ratio", "temperature"),
        *("reads", "metrics", "label", "log", "count", "options", "url", "tokens", "source", "pairs_min", "command"),
    ]
)
_VALUES = strategies.recursive(
    _LEAVES,
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=12,
)


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


def _judged(text: str) -> None:
    try:
        recipe = parse(text)
    except PatchFileError as error:
        problems = error.details["problems"]
    else:
        assert recipe.points
        return
    assert problems
    assert all(problem["message"] for problem in problems)


@given(strategies.dictionaries(_WORDS, _VALUES, max_size=8))
@effort(300)
def test_any_toml_is_a_recipe_or_says_why_not(values: dict[str, object]) -> None:
    _judged("".join(f"{key} = {_toml(value)}\n" for key, value in values.items()))


@given(strategies.sampled_from([*RECIPES, DESIGN, LAYERS]), strategies.data())
@effort(300)
def test_a_recipe_with_one_line_changed(text: str, data: strategies.DataObject) -> None:
    rows = text.split("\n")
    at = data.draw(strategies.integers(0, len(rows) - 1))
    key = rows[at].partition("=")[0].strip() or "name"
    rows[at] = f"{key} = {_toml(data.draw(_VALUES))}" if "=" in rows[at] else data.draw(strategies.text(max_size=9))
    _judged("\n".join(rows))
