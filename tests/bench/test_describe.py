"""A recipe in words."""

from __future__ import annotations

from patchkit.bench.describe import Processes, describe_recipe, processes, settings
from patchkit.model.load_recipe import parse_recipe
from patchkit.model.recipe import Protocol

TEXT = """
schema = 1
name = "r"
source = "somebody"
patches = ["p"]
[workload]
prompts = ["a", "b"]
batch_mult = 8
temperature = "default"
seed = 3
[engine]
kind = "vllm"
model = "m"
enable_prefix_caching = false
[engine.env]
A = "1"
[treatment.engine]
max_num_seqs = 16
speculative = { method = "ngram" }
options = { deep = [1, true] }
[protocol]
discarded = 2
traced = true
[gates]
throughput = { min_ratio = 0.97, min = 100 }
ttft = { max_ratio = 1.1 }
recompiles = 2
[figures]
throughput = { baseline = 100, treatment = 150 }
ttft = { baseline = 0.2 }
[economics]
chips = 4
chip_watts = 197
price_per_hour = 1.2
[[evidence]]
log = "on"
arm = "treatment"
count = "2+"
[[evidence]]
log = "off"
count = 0
[[evidence]]
log = "one"
count = 1
"""


def words(text: str) -> list[str]:
    return list(describe_recipe(parse_recipe(text.encode(), None)))


def test_everything_of_one_comparison() -> None:
    assert words(TEXT) == [
        "engine: vllm",
        "on trial: p",
        "compared:",
        "  both: requests 16 (2 prompts x 8), max_tokens 128, repeats 3, temperature the engine's own, seed 3, "
        'model m, enable_prefix_caching no, A "1"',
        "  baseline: as it is",
        "  treatment: patches p, max_num_seqs 16, speculative.method ngram, options.deep 1, yes",
        "  published: output throughput 100 tokens/s to 150 tokens/s (+50.0 %)",
        "  published: TTFT 200 ms to ?",
        "judged by: output throughput >= -3.0 % and >= 100 tokens/s; TTFT <= +10.0 %; output tokens identical; "
        "at most 2 compilations of a function after warm-up that the baseline has not; "
        "every probe of the patches fires",
        'evidence: at least 2 lines of the treatment\'s log with "on"',
        'evidence: no line of the engine\'s log with "off"',
        'evidence: 1 line of the engine\'s log with "one"',
        "plan: preflight, with recompilation forbidden, 2 discarded runs of each arm, 3 to 5 pairs in ABBA order, "
        "one traced run of each arm: 13 to 17 processes",
        "economics: 4 chips, 197 W each, rated, 1.20 dollars an hour",
        "published by: somebody",
    ]


def test_points_and_commands() -> None:
    text = (
        'schema = 1\nname = "r"\n[engine]\nkind = "command"\ncommand = ["a", "b"]\n[[point]]\nlabel = "one"\n'
        'treatment = { engine = { command = ["c"] } }\n[[point]]\nlabel = "two"\n'
        "baseline = { workload = { prompts = ['x'], concurrency = 2 } }\n[protocol]\npreflight = false\ndiscarded = 0\n"
        "[gates]\ntokens = 'any'\nrecompiles = 'any'\nprobes = 'any'\nthroughput = { min = 1 }\n"
    )
    assert words(text) == [
        "engine: command",
        "on trial: no patch; settings are compared",
        "one:",
        "  both: reads patchkit",
        "  baseline: command a b",
        "  treatment: command c",
        "two:",
        "  both: command a b, reads patchkit",
        "  baseline: requests 1 (1 prompt x 1), max_tokens 128, repeats 3, temperature 0, concurrency 2",
        "  treatment: as it is",
        "judged by: output throughput >= 1 tokens/s",
        "plan: 3 to 5 pairs in ABBA order: 12 to 20 processes for 2 points",
    ]


def test_of_a_command_no_preflight_is_planned_and_a_ratio_stands_for_itself() -> None:
    text = (
        'schema = 1\nname = "r"\nsource = "s"\n[engine]\nkind = "command"\ncommand = ["a"]\n'
        '[treatment.engine]\ncommand = ["b"]\n[figures]\nthroughput = { ratio = 1.056 }\nttft = { ratio = 3 }\n'
        "itl = { baseline = 0.02, ratio = 0.5 }\n"
    )
    said = words(text)
    assert [line for line in said if "published:" in line] == [
        "  published: output throughput +5.6 %",
        "  published: TTFT x3.00",
        "  published: ITL 20 ms to ? (-50.0 %)",
    ]
    plans = [line for line in said if line.startswith("plan:")]
    assert plans == ["plan: 1 discarded run of each arm, 3 to 5 pairs in ABBA order: 8 to 12 processes"]


def test_settings_of_an_arm() -> None:
    recipe = parse_recipe(TEXT.encode(), None)
    assert settings(recipe.points[0].treatment)["patches"] == "p"
    assert "patches" not in settings(recipe.points[0].baseline)


def test_processes_of_a_point() -> None:
    assert processes(Protocol()) == Processes(1, 2, 6, 10, 0)
    assert processes(Protocol(2, 2, 0, False, traced=True)) == Processes(0, 0, 4, 4, 2)
