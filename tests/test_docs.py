"""The documents say what is so: their patches load, their commands parse, their lists are complete."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.bench import Bench
from support.dists import keep_wheel
from support.documents import (
    DOCS,
    ROOT,
    blocks,
    codes_of,
    document,
    rows,
    spelled,
    ticked,
    tree_of,
    without_blocks,
)

from patchkit import errors
from patchkit.bench.compiletime.spec import load_spec
from patchkit.cli.commands import COMMANDS
from patchkit.cli.output import Output
from patchkit.cli.parser import build_parser, parse
from patchkit.model.load import load_patch
from patchkit.ops.lint import is_recipe, lint_file, lint_recipe

SOURCES = sorted((ROOT / "patchkit").rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


each_document = pytest.mark.parametrize("path", DOCS, ids=name_of)


# --- form


@each_document
def test_everything_but_tables_is_wrapped_at_120(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    assert [n for n, line in enumerate(lines, 1) if len(line) > 120 and not line.startswith("|")] == []


@each_document
def test_fences_are_closed_and_have_a_language(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n```") == 2 * len(list(blocks(text)))


def anchors(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", without_blocks(path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@each_document
def test_links_resolve(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(path.read_text(encoding="utf-8"))):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.is_file(), target
        assert ROOT in there.parents, target
        assert not anchor or anchor in anchors(there), target


def test_every_page_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", document("docs/index.md")))
    assert linked == {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}


@each_document
def test_no_path_of_a_machine_and_no_index_host(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"(?<![\w.~$}])/(?:home|root|tmp|work|usr|opt|mnt|var|etc|Users)\b\S*", text) == []
    hosts = set(re.findall(r"[a-z]+://([^/\s)\"'>]+)", text))
    assert hosts <= {"github.com", "peps.python.org", "keepachangelog.com", "semver.org", "example.org", "bencher.dev"}


# --- patches and commands


@each_document
def test_every_patch_in_a_document_loads_and_lints(path: Path, tmp_path: Path) -> None:
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language == "toml" and re.search(r"^schema\s*=\s*1$", block.text, re.MULTILINE):
            name = re.search(r'^name\s*=\s*"([^"]+)"', block.text, re.MULTILINE)
            assert name, f"{path.name}:{block.line}"
            file = tmp_path / f"{name[1]}.toml"
            file.write_text(block.text, encoding="utf-8")
            if "[[variant]]" in block.text:
                load_spec(str(file))
                continue
            if is_recipe(str(file)):
                assert lint_recipe(str(file)) == [], f"{path.name}:{block.line}"
                continue
            load_patch(str(file))
            assert [f for f in lint_file(str(file)) if f.level != "note"] == [], f"{path.name}:{block.line}"


def command_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """The arguments of each ``patchkit ...`` in the console and sh blocks, and in the running text."""
    for block in blocks(text):
        if block.language in ("console", "sh", "dockerfile", "yaml"):
            for offset, line in enumerate(block.text.split("\n"), 1):
                if block.language == "console" and not line.startswith("$ "):
                    continue
                for part in re.sub(r"^(\$|RUN|- run:) ", "", line).split(" && "):
                    word, _, rest = part.strip().partition(" ")
                    if word.rpartition("/")[2] == "patchkit":
                        given = rest.partition(" > ")[0].replace("$!", "4711")
                        yield block.line + offset, shlex.split(given, comments=True)
    for found in re.finditer(r"`patchkit ([^`]+)`", without_blocks(text)):
        arguments = shlex.split(found[1])
        if len(arguments) > 1 or arguments[0] not in COMMANDS:  # the bare name of a command is not a command line
            yield text.count("\n", 0, text.find(found[0])) + 1, arguments


@each_document
def test_every_command_line_parses(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line, arguments in command_lines(path.read_text(encoding="utf-8")):
        if "COMMAND" in arguments:
            continue
        try:
            parsed = parse(arguments, Output(json_mode=False, color="never"))
        except errors.PatchkitError as error:
            pytest.fail(f"{path.name}:{line}: patchkit {shlex.join(arguments)}: {error.message}")
        assert parsed is not None or {"--help", "-h", "--version"} & set(arguments)
    capsys.readouterr()


def test_the_readme_has_exactly_two_set_up_commands() -> None:
    lines = [
        line for block in blocks(document("README.md")) if block.language == "sh" for line in block.text.split("\n")
    ]
    assert [line for line in lines if line] == [
        "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/patchkit try logits-greedy",
        "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/python -m pytest -n auto",
    ]


@each_document
def test_no_command_is_promised_that_is_not_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    words = {arguments[0] for _, arguments in command_lines(text) if arguments and not arguments[0].startswith("-")}
    assert words <= {*COMMANDS, "COMMAND"}


# --- commands.md


def option_strings(parser: Any) -> set[str]:
    return {text for action in parser._actions for text in action.option_strings}


def test_the_global_options_are_those_of_the_parser() -> None:
    found = {text for row in rows(document("docs/commands.md"), "## Global options") for text in ticked(row[0])}
    assert {text.partition(" ")[0] for text in found} >= option_strings(build_parser("schema"))
    documented = {
        text.partition(" ")[0]
        for row in rows(document("docs/commands.md"), "## Global options")[:8]
        for text in ticked(row[0])
    }
    assert documented == option_strings(build_parser("schema"))


@pytest.mark.parametrize("command", COMMANDS)
def test_each_commands_arguments_are_those_of_the_parser(command: str) -> None:
    parser = build_parser(command)
    (sub,) = [action for action in parser._actions if action.dest == "command"]
    actions = [
        a
        for a in sub.choices[command]._actions
        if not set(a.option_strings) & option_strings(parser) or "--version" in a.option_strings
    ]
    expected = {text for action in actions for text in action.option_strings}
    expected |= {str(action.metavar) for action in actions if not action.option_strings}
    table = rows(document("docs/commands.md"), f"## {command}")
    start = [row[0] for row in table].index("argument") if ["argument", "means"] in table else len(table)
    documented = set()
    for row in table[start + 1 :]:
        if row[0] in ("action", "state"):
            break
        documented |= {text.partition(" ")[0] for text in ticked(row[0])}
    assert documented == expected


def test_every_command_is_in_the_list() -> None:
    table = rows("\n" + document("docs/commands.md"), "# Commands")
    listed = [ticked(row[0])[0] for row in table if row[0].startswith("[`")]
    assert set(listed) == set(COMMANDS)


def test_the_states_are_those_of_check() -> None:
    table = rows(document("docs/commands.md"), "## check")
    states = {ticked(row[0])[0]: row[1] for row in table if len(row) == 3 and ticked(row[0])}
    sources = [ROOT / f"patchkit/ops/{name}.py" for name in ("check", "drift", "interrupted")]
    made = set()
    for node in (node for path in sources for node in ast.walk(tree_of(path))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("state", "PatchState"):
            at = node.args[0 if node.func.id == "state" else 1] if len(node.args) > 1 else None
            made |= {n.value for n in ast.walk(at) if isinstance(n, ast.Constant)} if at is not None else set()
    made = {word for word in made if isinstance(word, str)}
    assert made <= set(states)
    from patchkit.ops.check import CLEAN

    assert {state for state, clean in states.items() if clean == "yes"} == set(CLEAN)
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    assert [state for state in states if f'"{state}"' not in text] == []


def test_the_actions_are_those_of_the_commands() -> None:
    from patchkit.cli.commands.change import _VERBS

    table = rows(document("docs/commands.md"), "## apply")
    start = [row[0] for row in table].index("action")
    assert {ticked(row[0])[0] for row in table[start + 1 :] if ticked(row[0])} == set(_VERBS)


def test_the_exit_codes_are_those_of_the_errors() -> None:
    documented = {row[0] for row in rows(document("docs/commands.md"), "## Exit codes")} - {"status", "---"}
    classes = [value for value in vars(errors).values() if inspect.isclass(value)]
    raised = {str(kind.exit_status) for kind in classes if issubclass(kind, errors.PatchkitError)}
    assert documented == raised | {"0", "1", "6", "130"}
    assert set(re.findall(r"`(\d+)` ", document("README.md"))) >= documented


def test_the_environment_variables_are_those_that_are_read() -> None:
    documented = {
        ticked(row[0])[0] for row in rows(document("docs/commands.md"), "## Environment variables") if ticked(row[0])
    }
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    assert [name for name in documented if f'"{name}"' not in text] == []
    assert set(re.findall(r'"(PATCHKIT_[A-Z]+)"', text)) <= documented


def shape(value: Any) -> Any:
    """The member names of a JSON value, and of the first element of its lists."""
    if isinstance(value, dict):
        return {key: shape(member) for key, member in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return None


def covers(documented: Any, found: Any) -> bool:
    """Whether every member that is found is documented, and the other way round (an empty list shows nothing)."""
    if isinstance(documented, dict) and isinstance(found, dict):
        return set(documented) == set(found) and all(covers(documented[key], found[key]) for key in found)
    if isinstance(documented, list) and isinstance(found, list) and documented and found:
        return covers(documented[0], found[0])
    return True


FIX = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'


@pytest.mark.parametrize(
    "command",
    sorted(
        set(COMMANDS) - {"compile-time", "matrix", "port", "rebench", "report", "revert", "rig", "sync", "trace", "try"}
    ),
)
def test_the_json_has_the_members_that_are_documented(command: str, bench: Bench, tmp_path: Path) -> None:
    examples = {block.title: block for block in blocks(document("docs/commands.md")) if block.language == "json"}
    documented = json.loads(examples[command].text)
    if command == "schema":
        documented["patch"] = None
    bench.patch("my-fix", FIX)
    arguments = ["my-fix"] if command in ("apply", "check", "show", "diff", "lint", "export", "require") else []
    if command == "run":
        arguments = ["--with", "my-fix", "--dry-run"]
    if command == "transplant":
        (bench.site / "demo" / "fast.so").write_bytes(b"")
        bench.write("demo/util.py", b"name = 'demo.core'\n")
        arguments = ["demo", "my_demo"]
    if command == "create":  # what is edited by hand on top of a patch has its original in the ledger
        (bench.site / "demo" / "data.bin").write_bytes(b"\xff\0")
    if command != "apply":
        assert bench("apply", "my-fix").status == 0
    if command == "create":
        bench.write("demo/core.py", bench.read("demo/core.py") + b"X = 1\n")
        arguments = ["mine", "demo"]
    elif command == "live":
        bench.patch("my-fix", f'{FIX}[[edit]]\nfile = "demo/core.py"\nscope = "double"\nprobe = "it ran"\n')
        assert bench("apply", "my-fix").status == 0
        script = f"import sys; sys.path.insert(0, {str(bench.site)!r}); import demo.core; sys.stdin.read()"
        environment = {**os.environ, "PATCHKIT_PROBES": str(tmp_path / "probes")}
        job = subprocess.Popen([sys.executable, "-c", script], env=environment, stdin=subprocess.PIPE)
        pid = ["--pid", str(job.pid)] if sys.platform == "linux" else []
        arguments = ["--probes", str(tmp_path / "probes"), *pid]
        bench("live", "--probes", str(tmp_path / "probes"), "--wait", "2")
    elif command == "new":
        arguments = ["mine", "demo"]
    elif command == "edit":
        arguments = ["demo"]
    elif command == "import":
        head = "--- a/demo/util.py\n+++ b/demo/util.py\n@@ -1 +1 @@\n"
        diff = f"{head}-X = 1\n+X = 2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
        (bench.root / "work" / "pr.diff").write_text(diff)
        arguments = ["pr.diff", "--name", "mine", "--dist", "demo"]
    found = bench.json(command, *arguments).json
    if command == "live":
        job.communicate(b"")
    assert covers(shape(documented), shape(found)), (shape(documented), shape(found))
    assert found["command"] == command


@pytest.mark.parametrize("command", ["matrix", "port"])
def test_the_json_about_releases_has_the_members_that_are_documented(
    command: str, bench: Bench, tmp_path: Path
) -> None:
    examples = {block.title: block for block in blocks(document("docs/commands.md")) if block.language == "json"}
    core = str(bench.files["demo/core.py"])
    keep_wheel(tmp_path / "cache", "demo", "1.0", {"demo/core.py": core})
    keep_wheel(tmp_path / "cache", "demo", "1.1", {"demo/core.py": core.replace("    return y\n", "    return +y\n")})
    edit = FIX.replace('"y = x + x"', '"""\n    y = x + x\n    return y\n"""').replace('"y = 2 * x"', '"    y = 0\\n"')
    bench.patch("my-fix", edit, requirement="demo==1.0")
    found = bench.json(command, "my-fix", "--offline", *(["--to", "1.1"] if command == "port" else [])).json
    assert covers(shape(json.loads(examples[command].text)), shape(found)), shape(found)


def test_revert_and_sync_print_the_object_of_apply(bench: Bench) -> None:
    bench.patch("my-fix", FIX)
    applied = bench.json("apply", "my-fix").json
    assert set(bench.json("sync").json) == set(applied)
    assert set(bench.json("revert", "my-fix").json) == set(applied)


# --- errors.md


def test_every_error_code_is_documented_and_every_documented_one_is_raised() -> None:
    from patchkit.state.fs import _CODES

    raised = {code for path in SOURCES for code in codes_of(path)}
    raised |= {code for code, _ in _CODES.values()} | {"os-error", "interrupted"}
    text = document("docs/errors.md")
    headings = re.findall(r"^## Exit status .*$", text, re.MULTILINE)
    documented = {ticked(row[0])[0] for heading in headings for row in rows(text, heading) if ticked(row[0])}
    assert documented == raised


@pytest.mark.parametrize(
    "kind",
    ["UsageError", "PatchFileError", "GuardError", "PlanError", "SiteError", "MeasurementError", "InternalError"],
)
def test_a_code_stands_under_the_exit_status_of_its_class(kind: str) -> None:
    text = document("docs/errors.md")
    status = getattr(errors, kind).exit_status
    (heading,) = re.findall(rf"^## Exit status {status}: .*$", text, re.MULTILINE)
    documented = {ticked(row[0])[0] for row in rows(text, heading) if ticked(row[0])}
    raised = set()
    for path in SOURCES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == kind:
                for keyword in node.keywords:
                    if keyword.arg == "code":
                        raised |= spelled(keyword.value, path)
    assert raised <= documented


def test_the_error_object_is_as_shown(bench: Bench) -> None:
    (block,) = [block for block in blocks(document("docs/errors.md")) if block.language == "json"]
    found = bench.json("show", "logits-gready").error
    assert {**json.loads(block.text), "hint": found["hint"]} == found


# --- contributing.md


def test_the_tools_of_contributing_are_there() -> None:
    text = document("docs/contributing.md")
    for path in re.findall(r"`((?:tests|benchmarks|\.ci|docs|patches)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path
    rooms = {ticked(row[0])[0] for row in rows(text, "## Rooms") if ticked(row[0])}
    package = {f"{path.name}/" for path in (ROOT / "patchkit").iterdir() if (path / "__init__.py").is_file()}
    package |= {path.name for path in (ROOT / "patchkit").glob("*.py") if not path.name.startswith("__")}
    assert package <= rooms
    assert importlib.util.find_spec("pytest") is not None


def test_the_files_of_each_room_are_those_that_contributing_lists() -> None:
    room, listed = "", set()
    for first, *_ in rows(document("docs/contributing.md"), "### Files"):
        words = ticked(first)
        if words and words[0].endswith("/"):
            room = words[0]
        elif words:
            listed.add(room + words[0])
    inside = {path.relative_to(ROOT / "patchkit") for path in SOURCES if path.name != "__init__.py"}
    present = {path.as_posix() for path in inside if len(path.parts) > 1}
    assert (sorted(present - listed), sorted(listed - present)) == ([], []), "without a line, and gone"


def test_no_document_tells_to_install_what_is_named_patchkit_on_the_index() -> None:
    """The distribution has another name than the command (pyproject.toml); documents install a folder or that name."""
    for path in DOCS:
        for block in blocks(path.read_text(encoding="utf-8")):
            assert not re.search(r"install (-\S+ )*patchkit\b", block.text), f"{path.name}:{block.line}"
