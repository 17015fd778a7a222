"""What is compiled: a TOML file beside a Python file of the user's, loaded and checked.

The spec is data. The Python file that it names is the user's own program, as a test file is to pytest: it runs in the
target's interpreter when the spec is run, and never in this process.
"""

from __future__ import annotations

import os

from patchkit.bench.catalog import is_path, recipe_folders
from patchkit.errors import UsageError
from patchkit.model.document import MAX_BYTES, Document, toml_type
from patchkit.model.keys import NAME, PATH, Key, Table
from patchkit.runtime.ledger import read_regular
from patchkit.tuples import NamedTuple

FOLDER = "compile-time"
"""Below a folder of recipes: where specs are found by name."""
PHASES = ("lower", "compile", "first_run")
"""What is timed, in its order."""
_FUNCTION = r"^[A-Za-z_][A-Za-z0-9_]*$"
_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"


def _figure(name: str, doc: str) -> Key:
    return Key(name, "number", doc, above=0)


TOP = Table(
    "",
    "",
    "The top of the file.",
    {
        key.name: key
        for key in (
            Key("schema", "integer", "The version of this format.", required=True, enum=(1,)),
            Key("name", "string", "The spec's name, which is its file's.", required=True, pattern=NAME),
            Key("summary", "string", "One line on what is compared.", required=True, non_empty=True),
            Key("description", "text", "Why, and what a result means.", default=""),
            Key(
                "script",
                "string",
                "The Python file with the functions, relative to the spec.",
                required=True,
                pattern=PATH,
                check="path",
            ),
            Key("trials", "integer", "Processes of each variant.", default=5, minimum=1, maximum=1000),
            Key("timeout", "number", "Seconds after which a process is ended.", default=600.0, above=0),
            Key("env", "table", "Environment variables of every process."),
            Key("variant", "tables", "What is compiled; one at least.", required=True),
        )
    },
)
ENV = Table(
    "env",
    "[env]",
    "Environment variables of every process.",
    {},
    Key("NAME", "string", "Its value."),
    _VARIABLE,
)
VARIANT = Table(
    "variant",
    "[[variant]]",
    "One thing that is compiled.",
    {
        key.name: key
        for key in (
            Key("name", "string", "What it is called.", required=True, pattern=NAME),
            Key(
                "function",
                "string",
                "A function of the script: it takes nothing and returns a jitted function and the tuple of its "
                "arguments, and as a third, if it has anything to say of what it made, a note.",
                required=True,
                pattern=_FUNCTION,
            ),
            Key("published", "table", "What others measured of it: shown beside, never compared."),
        )
    },
)
PUBLISHED = Table(
    "variant.published",
    "[variant.published]",
    "Figures of others.",
    {
        key.name: key
        for key in (
            Key("on", "string", "Where: hardware and versions, and by whom.", required=True, non_empty=True),
            *(
                _figure(f"{phase}_{which}", f"Milliseconds of `{phase}`: {words}.")
                for phase in PHASES
                for which, words in (("ms", "the median"), ("ms_min", "the least"), ("ms_max", "the most"))
            ),
        )
    },
)


class Published(NamedTuple):
    """Figures of others; milliseconds by phase: median, least and most, where they are known."""

    on: str
    figures: dict[str, tuple[float, float | None, float | None]]


class Variant(NamedTuple):
    """One thing that is compiled."""

    name: str
    function: str
    published: Published | None = None


class Spec(NamedTuple):
    """A spec as data; ``script`` is a whole path."""

    path: str
    name: str
    summary: str
    description: str
    script: str
    trials: int
    timeout: float
    env: dict[str, str]
    variants: tuple[Variant, ...]


def path_of(name: str) -> str:
    """The file of the spec ``name``, which may be a path itself.

    Raises:
        UsageError: ``unknown-spec``: there is none.
    """
    places = [os.path.join(folder.path, FOLDER) for folder in recipe_folders()]
    tried = [name] if is_path(name) else [os.path.join(place, f"{name}.toml") for place in places]
    for path in tried:
        if os.path.isfile(path):
            return path
    raise UsageError(
        f"no spec {name}",
        code="unknown-spec",
        hint="check the path"
        if is_path(name)
        else f"looked in {', '.join(places)}; a path to a .toml file does as well",
        details={"spec": name},
    )


def load_spec(path: str) -> Spec:
    """Load a spec.

    Raises:
        PatchFileError: It is wrong, with every problem.
        UsageError: ``no-spec``: it cannot be read.
    """
    try:
        data = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", code="no-spec", hint="check the path", details={"path": path}
        ) from None
    return parse_spec(data, path)


def parse_spec(data: bytes, path: str) -> Spec:
    """A spec of its bytes; ``path`` is what its name and its script are relative to.

    Raises:
        PatchFileError: It is wrong, with every problem.
    """
    document = Document(data, path)
    top = document.read(document.root, (), TOP).values
    stem = os.path.basename(path).removesuffix(".toml")
    if "name" in top and top["name"] != stem:
        document.key_problem(("name",), f"must be the file's, {stem!r}, found {top['name']!r}")
    env = document.read(top.get("env", {}), ("env",), ENV).values
    variants: list[Variant] = []
    for number, raw in enumerate(top.get("variant", ()), 1):
        at = ("variant", number)
        values = document.read(raw, at, VARIANT).values
        name = values.get("name", "")
        if name and name in [variant.name for variant in variants]:
            document.key_problem((*at, "name"), f"{name!r} is the name of another variant")
        published = None
        if "published" in values:
            published = _published(document, values["published"], (*at, "published"))
        variants.append(Variant(name, values.get("function", ""), published))
    if "variant" in top and not variants:
        document.key_problem(("variant",), f"must not be empty, found {toml_type([])}")
    document.finish(hint="see docs/compile-time.md for what a spec holds")
    return Spec(
        path,
        top["name"],
        top["summary"],
        top.get("description", ""),
        os.path.join(os.path.dirname(os.path.abspath(path)), *top["script"].split("/")),
        top.get("trials", 5),
        top.get("timeout", 600.0),
        dict(env),
        tuple(variants),
    )


def _published(document: Document, raw: dict[str, object], at: tuple[str | int, ...]) -> Published:
    values = document.read(raw, at, PUBLISHED).values
    figures: dict[str, tuple[float, float | None, float | None]] = {}
    for phase in PHASES:
        median, least, most = (values.get(f"{phase}_{which}") for which in ("ms", "ms_min", "ms_max"))
        if median is not None:
            figures[phase] = (median, least, most)
        elif least is not None or most is not None:
            document.table_problem(at, at, f"{phase}_ms is missing beside its least or most")
    return Published(values.get("on", ""), figures)
