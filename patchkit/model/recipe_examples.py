"""Whole recipes as examples: the JSON Schema takes the examples of every table and key out of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from patchkit.model.keys import Key, inner
from patchkit.model.recipe_keys import TABLES

RECIPES = (
    """\
schema = 1
name = "greet-politely-bench"
summary = "What greeting politely costs"
description = "A greeting that is heard is answered, and that takes its time."
links = ["https://example.org/greeting/issues/7"]
tags = ["greeting"]
source = "greeting's own report of version 1.4"
patches = ["greet-politely"]

[workload]
prompts = ["Good day", "Who is there?"]
batch_mult = 16
max_tokens = 64
temperature = 0.0
logprobs = 5
ignore_eos = true
repeats = 3

[engine]
kind = "vllm"
model = "example/greeter-2b"
max_num_seqs = 32
max_model_len = 2048
dtype = "bfloat16"
tensor_parallel_size = 1
enable_prefix_caching = false
async_scheduling = true
timeout = 1800

[engine.env]
GREETING_LOG = "1"

[engine.options]
gpu_memory_utilization = 0.9
compilation_config = { mode = 0 }

[treatment.engine.env]
GREETING_POLITE = "yes"

[protocol]
pairs_min = 3
pairs_max = 5
discarded = 1
preflight = true
pause = 5
trip_throughput = 0.2
trip_ttft = 0.5
traced = true

[gates]
throughput = { min_ratio = 0.97 }
ttft = { max_ratio = 1.10 }
kv_cache_tokens = { min = 400_000 }
model_memory = { max = 5 }
tokens = "identical"
recompiles = 0
probes = "required"

[economics]
chip_watts = 197
price_per_hour = 1.20
chips = 1

[figures.throughput]
baseline = 13470
treatment = 14100

[figures.ttft]
baseline = 0.187

[[evidence]]
log = "politeness: on"
arm = "treatment"
count = "1+"

[[evidence]]
log = "falling back"
count = 0
""",
    """\
schema = 1
name = "greet-in-batches"
source = "greeting's own report of version 1.4"

[workload]
prompts = ["Good day"]
max_tokens = 32
temperature = "default"
top_p = 0.9
top_k = 40
seed = 7
concurrency = 8
request_rate = 4.5

[engine]
kind = "openai"
model = "example/greeter-2b"
quantization = "fp8"
kv_cache_dtype = "auto"
transplants = ["my_greeting"]
speculative = { method = "ngram", num_speculative_tokens = 4 }
profile = false

[baseline]
patches = ["greet-politely"]

[baseline.workload]
batch_mult = 8

[treatment]
patches = ["greet-politely", "greet-quietly"]
workload = { ignore_eos = false }

[treatment.engine]
kv_cache_dtype = "fp8"
speculative = { num_speculative_tokens = 5, prompt_lookup_max = 4 }

[[point]]
label = "16"
workload = { seed = 8 }
engine = { max_num_seqs = 16 }
baseline = { workload = { batch_mult = 16 } }
treatment = { workload = { batch_mult = 16 } }
figures = { itl = { baseline = 0.0177, treatment = 0.0312 } }

[[point]]
label = "32"
engine = { max_num_seqs = 32 }
figures = { itl = { ratio = 1.8 } }

[gates]
itl = { max_ratio = 1.05 }
tokens = "any"
recompiles = "any"
probes = "any"
""",
    """\
schema = 1
name = "greet-by-hand"

[engine]
kind = "command"
command = ["{python}", "greet.py", "--out", "{result}"]
result = "greetings.json"
reads = "json"

[engine.metrics]
greetings = "totals.per_second"
throughput = "totals.tokens"

[treatment.engine]
command = ["{python}", "greet.py", "--fast", "--out", "{result}"]

[gates]
greetings = { min_ratio = 0.9 }
""",
    """\
schema = 1
name = "greet-a-server"

[workload]
prompts = ["Good day"]

[engine]
kind = "openai"
url = "http://127.0.0.1:8000"

[treatment.engine]
url = "http://127.0.0.1:8001"
""",
    """\
schema = 1
name = "greet-on-a-cpu"
patches = ["greet-politely"]

[workload]
prompts = ["Good day"]

[engine]
kind = "tpu-cpu-rig"
rig = "rig"

[gates]
recompiles = 0
""",
)
"""In TOML, each named after its ``name``; together they have every key of every table."""


def documents() -> list[dict[str, Any]]:
    """The example recipes as TOML values."""
    import tomllib

    return [tomllib.loads(text) for text in RECIPES]


def examples_of(table: str) -> list[dict[str, Any]]:
    """The examples of one table, by its name as in :data:`patchkit.model.recipe_keys.TABLES`, wherever they stand."""
    found: list[dict[str, Any]] = []
    for document in documents():
        for name, values in _tables("", document):
            if name == table and values not in found:
                found.append(values)
    return found


def _tables(name: str, values: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The table ``name`` and every table in it, by name."""
    yield name, values
    table = TABLES[name]
    for key, value in values.items():
        meaning: Key | None = table.keys.get(key, table.others)
        if meaning is not None and meaning.type in ("table", "tables"):
            for one in value if isinstance(value, list) else [value]:
                yield from _tables(inner(table, meaning), one)
