"""Every key of a recipe, as data: as :mod:`patchkit.model.keys` is for patches.

The settings of workload and engine stand in one table each, wherever in the file they are written: at the top, in an
arm, in a point, in an arm of a point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from patchkit.model.keys import COUNT, NAME, Key, Table
from patchkit.model.recipe import METRICS, EngineKind, Format
from patchkit.tuples import NamedTuple

SCHEMA = 1
"""The version of the recipe file format that this patchkit reads."""

KINDS: tuple[str, ...] = get_args(EngineKind)
FORMATS: tuple[str, ...] = get_args(Format)
ARMS = ("baseline", "treatment")
DEFAULT = "default"
"""The word for what is left to the engine."""
ANY = "any"
"""The word for a gate that is left open."""

METRIC = "^[a-z][a-z0-9_]*$"
VARIABLE = "^[A-Za-z_][A-Za-z0-9_]*$"
OPTION = "^[A-Za-z][A-Za-z0-9_-]*$"
PAIRS = (2, 20)
"""The fewest pairs that have a spread, and the most that levels are defined for."""


class KindRule(NamedTuple):
    """What a kind of engine needs one of in ``[engine]``, and what says nothing to it."""

    needs: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()


_OF_COMMANDS = ("command", "result", "reads", "metrics")
KIND_RULES: dict[str, KindRule] = {
    "vllm": KindRule(("model",), ("rig", "url", *_OF_COMMANDS)),
    "openai": KindRule(("model", "url"), ("rig", *_OF_COMMANDS)),
    "command": KindRule(("command",), ("rig", "url")),
    "tpu-cpu-rig": KindRule((), ("model", "url", "tensor_parallel_size", *_OF_COMMANDS)),
}
SERVERS = ("concurrency", "request_rate")
"""What of a workload only a server or a command can be told."""
OF_THE_SERVER = (
    *("max_num_seqs", "max_model_len", "dtype", "quantization", "kv_cache_dtype", "tensor_parallel_size"),
    *("enable_prefix_caching", "async_scheduling", "speculative", "options", "env", "transplants", "profile"),
)
"""What of an engine says nothing where ``url`` names one that runs already."""


def _table(
    name: str,
    header: str,
    doc: str,
    keys: Iterable[Key] = (),
    *,
    others: Key | None = None,
    naming: str | None = None,
) -> Table:
    return Table(name, header, doc, {key.name: key for key in keys}, others, naming)


def _patches(doc: str) -> Key:
    return Key("patches", "strings", doc, default=(), pattern=NAME, unique=True, check="name")


_TOP = _table(
    "",
    "",
    "The top of the file, before its first table.",
    [
        Key("schema", "integer", "Version of the file format.", required=True, enum=(SCHEMA,)),
        Key(
            "name",
            "string",
            "Name of the recipe; the file is called `<name>.toml`.",
            required=True,
            pattern=NAME,
            check="name",
        ),
        Key(
            "summary", "string", "What is compared, in one line; the name when left out.", non_empty=True, check="line"
        ),
        Key("description", "text", "Why, and what it cannot show; any number of lines.", default="", check="prose"),
        Key("links", "strings", "Where more can be read.", default=(), check="line"),
        Key("tags", "strings", "Words to find the recipe by.", default=(), pattern=NAME, unique=True, check="name"),
        Key("source", "string", "Whose figures `figures` are: needed with them.", non_empty=True, check="line"),
        _patches("The patches on trial: those of the treatment."),
        Key("workload", "table", "What is asked of the engine, in both arms."),
        Key("engine", "table", "What is measured, and with which settings, in both arms.", required=True),
        Key("baseline", "table", "What is otherwise in the baseline.", of="arm"),
        Key("treatment", "table", "What is otherwise in the treatment, beside `patches`.", of="arm"),
        Key("point", "tables", "Several comparisons in one recipe, one after the other; one when left out."),
        Key("protocol", "table", "How it is run."),
        Key("gates", "table", "What decides the verdict."),
        Key("economics", "table", "What the machine costs."),
        Key("figures", "table", "Published figures, shown beside what is measured."),
        Key("evidence", "tables", "Lines that the engine's log must have, or must not."),
    ],
)

_WORKLOAD = _table(
    "workload",
    "[workload]",
    "What is asked of the engine in one process.",
    [
        Key("prompts", "strings", "The prompts of one batch.", default=(), non_empty=True),
        Key("batch_mult", "integer", "How often the prompts are repeated.", default=1, minimum=1),
        Key("max_tokens", "integer", "Output tokens of each request.", default=128, minimum=1),
        Key(
            "temperature",
            "number",
            'Sampling temperature: 0 is greedy; `"default"` leaves it to the engine.',
            default=0.0,
            minimum=0,
            words=(DEFAULT,),
        ),
        Key("top_p", "number", "Sampling: the probability mass that is drawn from.", above=0, maximum=1),
        Key("top_k", "integer", "Sampling: how many tokens are drawn from; -1 for all.", minimum=-1),
        Key("seed", "integer", "Of the random numbers; needed where sampled tokens are to be identical.", minimum=0),
        Key("logprobs", "integer", "Log probabilities that are asked for with each token.", minimum=0),
        Key(
            "ignore_eos",
            "boolean",
            "Go on to `max_tokens` whatever the model says; else fewer tokens are not missing ones.",
            default=True,
        ),
        Key(
            "repeats",
            "integer",
            "How often TTFT and the main generation are measured in one process; the first is told apart.",
            default=3,
            minimum=1,
        ),
        Key(
            "concurrency",
            "integer",
            "Requests in flight at once, of a server or a command; all when left out.",
            minimum=1,
        ),
        Key("request_rate", "number", "Requests per second, of a server or a command; at once when left out.", above=0),
    ],
)

_KIND = Key(
    "kind",
    "string",
    "`vllm`: the engine in a process of its own. `openai`: a server, asked over HTTP. `command`: any program. "
    "`tpu-cpu-rig`: the real TPU engine on a CPU.",
    required=True,
    enum=KINDS,
)
_SETTINGS = [
    Key("model", "string", "The model: a name of the hub or a folder.", non_empty=True, check="line"),
    Key("max_num_seqs", "integer", "Requests that the engine runs at once.", minimum=1),
    Key("max_model_len", "integer", "Most tokens of one request, prompt and output.", minimum=1),
    Key("dtype", "string", "Data type of the model's weights.", non_empty=True, check="line"),
    Key("quantization", "string", "How the weights are quantized.", non_empty=True, check="line"),
    Key("kv_cache_dtype", "string", "Data type of the KV cache.", non_empty=True, check="line"),
    Key("tensor_parallel_size", "integer", "Chips that share the model.", minimum=1),
    Key("enable_prefix_caching", "boolean", "Whether prompts that begin alike share their KV cache."),
    Key("async_scheduling", "boolean", "Whether the next step is scheduled while one runs."),
    Key("speculative", "table", "Speculative decoding: the settings of `speculative_config`.", of="engine.speculative"),
    Key("options", "table", "Further arguments of `vllm.LLM`, or options of `vllm serve`.", of="engine.options"),
    Key("env", "table", "Environment variables of the process.", of="engine.env"),
    Key("profile", "boolean", "With the profiler on: nothing timed is believed then.", default=False),
    Key(
        "transplants",
        "strings",
        "Folders made by `patchkit transplant` that are active, relative to the recipe.",
        default=(),
        unique=True,
        check="line",
    ),
    Key(
        "rig",
        "string",
        "The rig's folder, relative to the recipe; the site's own when left out.",
        non_empty=True,
        check="line",
    ),
    Key(
        "url",
        "string",
        "A server that runs already, for `openai`; one is started when left out.",
        pattern=r"^https?://\S+$",
    ),
    Key(
        "command",
        "strings",
        "The program and its arguments, for `command`.",
        default=(),
        non_empty=True,
        check="argument",
    ),
    Key(
        "result",
        "string",
        "The file that the command writes; its standard output when left out.",
        non_empty=True,
        check="line",
    ),
    Key("reads", "string", "The format of the command's result.", default="patchkit", enum=FORMATS),
    Key(
        "metrics",
        "table",
        "Where metrics stand in the result of a command, beside those that its format has.",
        of="engine.metrics",
    ),
    Key("timeout", "number", "Seconds for one process.", default=3600.0, above=0),
]
_ENGINE = _table("engine", "[engine]", "What is measured, and with which settings.", [_KIND, *_SETTINGS])
_ENGINE_OTHERWISE = _table(
    "arm.engine",
    "[baseline.engine]",
    "Settings of the engine that differ; `kind` is one for the whole recipe.",
    _SETTINGS,
)

_MAPS = (
    _table(
        "engine.speculative",
        "[engine.speculative]",
        "Speculative decoding, such as `method` and `num_speculative_tokens`.",
        others=Key("NAME", "string-or-integer", "One setting."),
        naming=OPTION,
    ),
    _table(
        "engine.options",
        "[engine.options]",
        "Further arguments of `vllm.LLM`, or options of `vllm serve`.",
        others=Key("NAME", "any", "One argument."),
        naming=OPTION,
    ),
    _table(
        "engine.env",
        "[engine.env]",
        "Environment variables of the process.",
        others=Key("NAME", "string", "The value of one variable.", check="argument"),
        naming=VARIABLE,
    ),
    _table(
        "engine.metrics",
        "[engine.metrics]",
        "Where metrics stand in the result of a command, beside those that its format has.",
        others=Key(
            "METRIC",
            "string",
            "The keys that lead to the number, such as `runs[0].p50`; ` in ms` behind it for another unit.",
            non_empty=True,
            check="line",
        ),
        naming=METRIC,
    ),
)

_OTHERWISE = [
    Key("workload", "table", "What is asked otherwise.", of="workload"),
    Key("engine", "table", "Settings that are otherwise.", of="arm.engine"),
]
_ARM = _table(
    "arm",
    "[baseline]",
    "What is otherwise in one arm.",
    [_patches("The patches of this arm; none in the baseline when left out."), *_OTHERWISE],
)
_POINT = _table(
    "point",
    "[[point]]",
    "One comparison of several.",
    [
        Key("label", "string", "What it is called.", required=True, non_empty=True, check="line"),
        *_OTHERWISE,
        Key("baseline", "table", "What is otherwise in the baseline of this point.", of="arm"),
        Key("treatment", "table", "What is otherwise in the treatment of this point.", of="arm"),
        Key("figures", "table", "Published figures of this point.", of="figures"),
    ],
)

_PROTOCOL = _table(
    "protocol",
    "[protocol]",
    "How it is run.",
    [
        Key("pairs_min", "integer", "Pairs before the first verdict.", default=3, minimum=PAIRS[0], maximum=PAIRS[1]),
        Key("pairs_max", "integer", "Pairs after which it ends.", default=5, minimum=PAIRS[0], maximum=PAIRS[1]),
        Key(
            "discarded",
            "integer",
            "Runs of each arm that come first and do not count.",
            default=1,
            minimum=0,
            maximum=5,
        ),
        Key("preflight", "boolean", "First the treatment once with recompilation forbidden, untimed.", default=True),
        Key("pause", "number", "Seconds between two processes.", default=0.0, minimum=0, maximum=3600),
        Key(
            "trip_throughput",
            "number",
            "Loss of throughput in both of the first two pairs that ends the experiment.",
            default=0.2,
            above=0,
        ),
        Key(
            "trip_ttft",
            "number",
            "Growth of TTFT in both of the first two pairs that ends the experiment.",
            default=0.5,
            above=0,
        ),
        Key("traced", "boolean", "At the end one profiled run of each arm, untimed.", default=False),
    ],
)


def _of_metrics(table: str) -> list[Key]:
    return [Key(name, "table", f"In {unit}, {better} is better.", of=table) for name, (unit, better) in METRICS.items()]


_GATES = _table(
    "gates",
    "[gates]",
    "What decides the verdict. A metric that is not named here is shown, and not judged.",
    [
        Key(
            "tokens",
            "string",
            "Output tokens of the arms: `identical`, as many as asked (`count`), or `any`.",
            default="identical",
            enum=("identical", "count", ANY),
        ),
        Key(
            "recompiles",
            "integer",
            "By how many compilations of one function after warm-up the treatment may exceed the baseline; "
            '`"any"` for no limit.',
            default=0,
            minimum=0,
            words=(ANY,),
        ),
        Key(
            "probes",
            "string",
            "Whether every probe of the patches on trial must fire: `required`, or `any`.",
            default="required",
            enum=("required", ANY),
        ),
        *_of_metrics("gate"),
    ],
    others=Key("METRIC", "table", "A metric of `[engine.metrics]`.", of="gate"),
    naming=METRIC,
)
_GATE = _table(
    "gate",
    "[gates.METRIC]",
    "A limit on one metric.",
    [
        Key("min_ratio", "number", "Least treatment / baseline, where higher is better.", above=0),
        Key("max_ratio", "number", "Most treatment / baseline, where lower is better.", above=0),
        Key("min", "number", "Least value of the treatment, in the metric's unit."),
        Key("max", "number", "Most of the treatment, in the metric's unit."),
    ],
)

_ECONOMICS = _table(
    "economics",
    "[economics]",
    "What the machine costs: shown, never judged.",
    [
        Key("chip_watts", "number", "Rated power of one chip, W; energy is an upper bound.", above=0),
        Key("price_per_hour", "number", "Price of an hour of all chips, in dollars.", above=0),
        Key("chips", "integer", "Chips of one engine.", default=1, minimum=1),
    ],
)

_FIGURES = _table(
    "figures",
    "[figures]",
    "Published figures, shown beside what is measured.",
    _of_metrics("figure"),
    others=Key("METRIC", "table", "A metric of `[engine.metrics]`.", of="figure"),
    naming=METRIC,
)
_FIGURE = _table(
    "figure",
    "[figures.METRIC]",
    "The published figures of one metric, in its unit.",
    [
        *(Key(name, "number", f"Of the {name}.", minimum=0) for name in ARMS),
        Key("ratio", "number", "Treatment / baseline, where it was published without the two.", above=0),
    ],
)

_EVIDENCE = _table(
    "evidence",
    "[[evidence]]",
    "A line that the engine's log must have, or must not: evidence beside the flag that was set.",
    [
        Key("log", "string", "Text of the line, exact.", required=True, non_empty=True, check="line"),
        Key("arm", "string", "Whose log; both when left out.", enum=ARMS),
        Key(
            "count",
            "count",
            'How many lines have it: exactly that many, 0 for none, `"1+"` for at least one.',
            default="1+",
            minimum=0,
            pattern=COUNT,
        ),
    ],
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        *(_TOP, _WORKLOAD, _ENGINE, *_MAPS, _ENGINE_OTHERWISE, _ARM, _POINT, _PROTOCOL, _GATES, _GATE, _ECONOMICS),
        *(_FIGURES, _FIGURE, _EVIDENCE),
    )
}
"""All tables of a recipe by name, in the order of the reference."""

HOMES: Mapping[str, Table] = {
    name: table for name, table in TABLES.items() if name not in ("arm", "arm.engine", "point")
}
"""Where a key may belong that stands elsewhere; tables that repeat others are left out."""
