"""The JSON Schema beside patch files, and the line by which an editor finds it."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support.bench import CORE, Bench

from patchkit.model.load import load_patch
from patchkit.model.schema import schema_text

LINE = "#:schema ./patch.schema.json\n"
DIFF = "--- a/demo/core.py\n+++ b/demo/core.py\n@@ -6,2 +6,2 @@\n-    y = x + x\n+    y = 2 * x\n     return y\n"
EDITED = CORE.replace("x + x", "2 * x").encode()


@pytest.fixture(autouse=True)
def _released(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The released files at hand, as a fetched wheel would have them."""
    monkeypatch.setattr("patchkit.ops.rebuild.from_wheel", lambda _, path, *__: str(bench.files[path]).encode())


def schema(bench: Bench) -> Path:
    return bench.patches / "patch.schema.json"


def made(bench: Bench, command: str, *options: str) -> str:
    """The text of the patch file that a command makes."""
    words = ["mine", "demo"]
    if command == "create":
        bench.write("demo/core.py", EDITED)
    elif command == "import":
        (bench.root / "work" / "pr.diff").write_text(DIFF)
        words = ["pr.diff", "--name", "mine", "--dist", "demo"]
    done = bench(command, *words, *options)
    assert done.status == 0, done.err
    return (bench.patches / "mine.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["new", "create", "import"])
def test_each_author_writes_the_line_and_the_file_that_it_names(bench: Bench, command: str) -> None:
    text = made(bench, command)
    assert text.startswith(f"{LINE}schema = 1\n")
    assert text.count("#:schema") == 1
    assert schema(bench).read_text(encoding="utf-8") == schema_text()
    assert load_patch(str(bench.patches / "mine.toml")).name == "mine"
    assert {entry.name for entry in bench.patches.iterdir()} == {"mine.toml", "patch.schema.json"}


@pytest.mark.parametrize("command", ["new", "create", "import"])
def test_without(bench: Bench, command: str) -> None:
    assert made(bench, command, "--no-schema").startswith("schema = 1\n")
    assert not schema(bench).exists()


def test_what_create_makes_counts_as_applied_with_its_line(bench: Bench) -> None:
    made(bench, "create")
    assert bench("check").status == 0
    assert bench("apply", "mine").out.startswith("unchanged")


@pytest.mark.parametrize("command", ["create", "import"])
def test_a_dry_run_shows_the_line_and_writes_nothing(bench: Bench, command: str) -> None:
    (bench.root / "work" / "pr.diff").write_text(DIFF)
    words: tuple[str, ...] = ("pr.diff", "--name", "mine", "--dist", "demo")
    if command == "create":
        bench.write("demo/core.py", EDITED)
        words = ("mine", "demo")
    assert bench(command, *words, "--dry-run").out.startswith(LINE)
    assert list(bench.patches.iterdir()) == []


def test_the_json_names_the_file(bench: Bench) -> None:
    assert bench.json("new", "mine", "demo").json["schema_path"] == str(schema(bench))
    assert bench.json("new", "other", "demo", "--no-schema").json["schema_path"] is None


def test_it_is_told_where_one_is_written(bench: Bench) -> None:
    assert "patch.schema.json: written, for editors" in bench("new", "mine", "demo").err
    assert "patch.schema.json" not in bench("new", "other", "demo").err  # it is there


@pytest.mark.parametrize(
    ("there", "refreshed"),
    [
        ({"$id": "urn:patchkit:patch:1"}, True),
        ({"$id": "urn:patchkit:patch:1", "$comment": "patchkit 0.0.9"}, True),
        ({"$id": "urn:patchkit:patch:1", "$comment": "patchkit 0.1.0"}, True),
        ({"$id": "urn:patchkit:patch:1", "$comment": "patchkit who knows"}, True),
        ({"$id": "urn:patchkit:patch:1", "$comment": "patchkit 99.0"}, False),  # a later patchkit's
        ({"$id": "urn:patchkit:patch:2", "$comment": "patchkit 0.0.1"}, False),
    ],
)
def test_an_earlier_one_is_refreshed_and_a_later_one_stays(
    bench: Bench, there: dict[str, Any], refreshed: bool
) -> None:
    schema(bench).write_text(json.dumps(there))
    assert made(bench, "new").startswith(LINE)
    assert (schema(bench).read_text() == schema_text()) == refreshed
    assert refreshed or json.loads(schema(bench).read_text()) == there


FOREIGN = [
    "not json",
    "[]",
    '{"$id": "https://example.org/x"}',
    '{"$id": 1}',
    '{"$id": "urn:patchkit:patch:x"}',
    "\udcff",
]


@pytest.mark.parametrize("text", FOREIGN)
def test_somebody_elses_file_stays_and_is_not_named(bench: Bench, text: str) -> None:
    schema(bench).write_text(text, errors="surrogateescape")
    assert made(bench, "new").startswith("schema = 1\n")
    assert schema(bench).read_text(errors="surrogateescape") == text
    done = bench("new", "other", "demo")
    assert "patch.schema.json is none that patchkit wrote: it stays, and the patch file names no schema" in done.err
    done = bench.json("schema", "--output", str(schema(bench)))
    assert (done.status, done.error["code"]) == (2, "exists")
    assert schema(bench).read_text(errors="surrogateescape") == text


def test_a_pipe_or_a_dead_link_in_its_place_stays(bench: Bench) -> None:
    os.mkfifo(schema(bench))
    assert made(bench, "new").startswith("schema = 1\n")
    schema(bench).unlink()
    schema(bench).symlink_to(bench.root / "nowhere.json")
    assert made(bench, "new", "--overwrite").startswith("schema = 1\n")
    assert not (bench.root / "nowhere.json").exists()


def test_a_file_that_is_replaced_keeps_its_own_line(bench: Bench) -> None:
    (bench.patches / "mine.toml").write_text("#:schema ../schemas/patch.json\nschema = 1\n")
    assert made(bench, "new", "--overwrite").startswith("#:schema ../schemas/patch.json\nschema = 1\n")
    assert not schema(bench).exists()


def test_schema_output(bench: Bench) -> None:
    target = bench.root / "work" / "mine.json"
    done = bench("schema", "--output", "mine.json")
    assert (done.status, done.out) == (0, "mine.json: written\n")
    assert target.read_text(encoding="utf-8") == schema_text() == bench("schema").out
    target.write_text(json.dumps({"$id": "urn:patchkit:patch:1"}))
    done = bench.json("schema", "--output", "mine.json")
    assert (done.json["path"], done.json["patch"]) == ("mine.json", json.loads(target.read_text()))
    assert bench.json("schema").json["path"] is None
    done = bench.json("schema", "--output", "no/where.json")
    assert (done.status, done.error["code"]) == (5, "unwritable")


def test_a_folder_of_patches_is_searched_for_toml_alone(bench: Bench) -> None:
    made(bench, "new")
    names = [patch["name"] for patch in bench.json("list").json["patches"]]
    assert "mine" in names
    assert not [name for name in names if "schema" in name]
    assert "\n1 patch file, 0 findings" in bench("lint").out


def test_the_patch_is_toml_with_a_comment(bench: Bench) -> None:
    assert tomllib.loads(made(bench, "create"))["edit"][0]["file"] == "demo/core.py"
