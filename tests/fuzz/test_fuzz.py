"""Bytes that nobody would write: an error or a value, never another exception, and what the oracle says."""

from __future__ import annotations

import ast
import json
import os
import random
import re
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from fuzz.runs import Outcomes, comes_to, runs
from hostile import forged
from hypothesis import given
from hypothesis import strategies as st
from support.dists import record_bytes
from support.sites import bare_site

from patchkit.edit.matcher import find_pattern
from patchkit.edit.outline import Outline
from patchkit.edit.parse import PARSE_ERRORS
from patchkit.edit.pattern import PatternError, compile_pattern
from patchkit.edit.proof import prove
from patchkit.edit.rewrite import rewrite_all
from patchkit.edit.source import Source, lay
from patchkit.edit.spans import Span
from patchkit.edit.text import find_text
from patchkit.errors import InternalError, PatchFileError, PatchkitError, PlanError, SiteError
from patchkit.model.keys import TABLES
from patchkit.model.load import parse_patch
from patchkit.model.project import load_project
from patchkit.ops.lint import lint_file
from patchkit.runtime import ledger as ledgers
from patchkit.site.distribution import find_distribution
from patchkit.state import journal as journals
from patchkit.state.ledger import from_json

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = [path.read_bytes() for path in sorted((ROOT / "patches").glob("*.toml"))]
#: What mutations put in: TOML's own marks, what patchkit gives a meaning, what Python and terminals dislike.
PIECES = [
    *(
        b"\n",
        b"\r",
        b'"',
        b"'",
        b"'''",
        b'"""',
        b"[",
        b"]",
        b"[[edit]]\n",
        b"{",
        b"}",
        b"=",
        b",",
        b".",
        b"#",
        b"\\",
        b"\0",
    ),
    *(
        b"\xff",
        b"\xe2\x80\xae",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"$X",
        b"$$$A",
        b"$$$BODY",
        b"..",
        b"/",
        b"0x",
        b"9" * 30,
    ),
    *(f"{key} = ".encode() for table in TABLES.values() for key in table.keys),
    *(b"-1", b"true", b"nan", b"1979-05-27", b"[target]\n", b"<locals>", b"(", b"lambda", b"{[", b"not ", b"\x1b[0m"),
]


@pytest.fixture
def outcomes(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Any:
    found = Outcomes(request.node.name.removeprefix("test_").replace("_", " "))
    yield found
    with capsys.disabled():
        print(found.told(), end="")
    total, wanted = sum(found.counts.values()), request.function.outcomes
    rare = {word: found.counts[word] for word in wanted if found.counts[word] * 100 < total}
    assert not rare, f"a test of what hardly happens: {rare} of {total}"
    assert set(found.counts) == set(wanted)


def mutated(data: bytes, seed: int) -> bytes:
    """``data`` with a few bytes flipped, parts cut, doubled, exchanged, or pieces put in."""
    chance = random.Random(seed)
    out = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at, to = sorted(chance.randrange(len(out) + 1) for _ in range(2))
        to = min(to, at + chance.choice((1, 3, 40, 400)))
        match chance.randrange(6):
            case 0:
                out[at:to] = b""
            case 1:
                out[at:at] = chance.choice(PIECES)
            case 2:
                out[at:to] = chance.choice(PIECES)
            case 3:
                out[at:at] = out[at:to] * chance.choice((1, 2, 30))
            case 4 if at < len(out):
                out[at] ^= 1 << chance.randrange(8)
            case _:
                del out[chance.randrange(len(out) + 1) :][chance.randrange(40) :]
    return bytes(out)


def assert_told(error: PatchkitError, *codes: str) -> None:
    """A refusal in words, of one of these codes, and no fault of ours."""
    assert not isinstance(error, InternalError)
    assert error.message.encode("utf-8", "surrogatepass")
    assert json.dumps(error.to_json())
    if codes:
        assert error.code in codes
        assert error.hint


def assert_loads_or_tells(data: bytes, outcomes: Outcomes) -> None:
    try:
        parse_patch(data, None)
    except PatchFileError as error:
        assert_told(error)
        outcomes.note("refused")
    else:
        outcomes.note("loaded")


@comes_to("loaded", "refused")
@given(st.sampled_from(SHIPPED), st.integers(0, 1 << 60))
@runs(1500)
def test_the_loader_on_mutated_patch_files(outcomes: Outcomes, data: bytes, seed: int) -> None:
    assert_loads_or_tells(mutated(data, seed), outcomes)


texts = st.sampled_from(
    [
        "",
        "x",
        "demo/a.py",
        "../a",
        "$X = 1",
        "f($$$A)",
        ">=1",
        "demo>=1; python_version>'3'",
        "1+",
        "a.b",
        "\x1b",
        "\u202e",
        "if x:",
    ]
) | st.text(max_size=8)
single = texts | st.integers(-3, 1 << 70) | st.booleans() | st.floats()
values = single | st.lists(single | st.lists(single, max_size=2), max_size=3)


def assigned(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(assigned, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f") if value.isprintable() else '"?"'
    return str(value).lower().replace("inf", "inf")


FILE = {"file": "demo/a.py"}
#: Tables as somebody would write them, whole: what is drawn besides may spoil them.
WHOLE: dict[str, list[dict[str, Any]]] = {
    "edit": [
        {**FILE, "find": "x = 1", "replace": "x = 2"},
        {**FILE, "find": "x = 1\n", "insert_before": "y = 1\n", "scope": "f"},
        {**FILE, "match": "$X = 1", "replace": "$X = 2", "inside": "if x:"},
        {**FILE, "match": "f($$$A)", "wrap": "g($$$BODY)", "count": 2, "nth": 1},
        {**FILE, "match": "del $X", "delete": True, "versions": ">=1"},
        {**FILE, "add_import": ["import os"]},
        {**FILE, "probe": "seen", "scope": "a.b"},
    ],
    "add": [{**FILE, "content": "x = 1\n"}],
    "precondition": [{**FILE, "find": "x = 1", "count": 0}, {**FILE, "match": "f($$$A)", "count": "1+"}],
    "postcondition": [{**FILE, "find": "x = 2"}, {**FILE, "match": "$X = 2", "scope": "f"}],
    "upstreamed": [{"versions": ">=2"}, {**FILE, "find": "x = 2", "versions": ">=1"}],
}


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """Tables of the format, whole at first; then keys put in, values exchanged, keys taken out, now and then."""

    def rows(table: str, keys: dict[str, Any]) -> list[str]:
        known = TABLES[table].keys
        for key in draw(st.lists(st.sampled_from(sorted(known)), unique=True, max_size=draw(st.integers(0, 2)))):
            right: st.SearchStrategy[Any] = {
                "integer": st.integers(0, 3), "boolean": st.just(True), "strings": st.lists(texts, max_size=3)
            }.get(known[key].type, texts)  # fmt: skip
            keys[key] = draw(right)
        if draw(st.integers(0, 5)) == 0:
            keys[draw(st.sampled_from(sorted(keys)))] = draw(values)
        if draw(st.integers(0, 7)) == 0:
            del keys[draw(st.sampled_from(sorted(keys)))]
        return [TABLES[table].header, *(f"{key} = {assigned(value)}" for key, value in keys.items())]

    lines = ["schema = 1", 'name = "p"', 'summary = "s"', *rows("target", {"requirement": "demo"})]
    for table in draw(st.lists(st.sampled_from(sorted(WHOLE)), min_size=1, max_size=3)):
        lines += rows(table, dict(draw(st.sampled_from(WHOLE[table]))))
    return "\n".join(lines).encode("utf-8", "replace")


@comes_to("loaded", "refused")
@given(documents())
@runs(800)
def test_the_loader_on_generated_patch_files(outcomes: Outcomes, data: bytes) -> None:
    assert_loads_or_tells(data, outcomes)


@comes_to("clean", "with findings")
@given(st.sampled_from(SHIPPED), st.integers(0, 1 << 60))
@runs(60)
def test_lint_on_mutated_patch_files(outcomes: Outcomes, data: bytes, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p.toml")
        Path(path).write_bytes(mutated(re.sub(rb"(?m)^name .*", b'name = "p"', data, count=1), seed))
        outcomes.note("with findings" if lint_file(path) else "clean")


@comes_to("with matches", "without")
@given(st.text("ab\n\r ", max_size=30), st.text("ab\n ", min_size=1, max_size=4))
@runs(1500)
def test_text_anchors_against_a_naive_search(outcomes: Outcomes, text: str, anchor: str) -> None:
    source = Source(text.encode(), path="x.py")
    found = {span.start for span in find_text(source, anchor, [Span(0, len(source.text))])}
    shown = source.text
    whole = anchor.endswith("\n")
    expected = {
        at
        for at in range(len(shown))
        if shown.startswith(anchor, at) and (not whole or at == 0 or shown[at - 1] == "\n")
    }
    assert found == expected
    outcomes.note("with matches" if found else "without")


names = st.sampled_from(["a", "b", "f", "x", "$X", "$Y", "$$$A", "$$$B", "$_", "1", "'s'", "a.b", "f(a)"])


def deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Code with other code in it."""
    several = st.lists(inner, max_size=3).map(", ".join)
    return (
        inner
        | st.builds("f({})".format, several)
        | st.builds("[{}]".format, several)
        | st.builds("{} + {}".format, inner, inner)
        | st.builds("{{{}: {}}}".format, inner, inner)
        | st.builds("(lambda {}: {})".format, names, inner)
        | st.builds("{}.b".format, inner)
        | st.builds("({} if {} else {})".format, inner, inner, inner)
        | st.builds("f'{{{}}}'".format, inner)
    )


code = deeper(deeper(names))
statements = st.lists(
    code
    | st.builds("{} = {}".format, names, code)
    | st.builds("if {}:\n    {}".format, code, code)
    | st.builds("def f({}):\n    return {}".format, names, code)
    | st.builds("for a in {}: {}".format, code, code)
    | st.sampled_from(["pass", "import a, b", "del a", "@f\ndef g(): pass", "$$$A", "try:\n    a\nfinally:\n    b"]),
    min_size=1,
    max_size=3,
).map("\n".join)


def assert_not_of_the_proof(error: Exception) -> None:
    """What the proof refuses was placed wrongly."""
    assert getattr(error, "code", "pattern") not in ("proof", "internal"), error


def without_metavariables(text: str) -> str:
    return text.replace("$$$", "").replace("$", "")


@comes_to("no code", "no match", "refused", "rewritten")
@given(statements, statements, statements, st.sampled_from(["replace", "insert_before", "insert_after", "delete"]))
@runs(600)
def test_patterns_and_templates_are_proved_or_refused(
    outcomes: Outcomes, given_code: str, wanted: str, template: str, action: Any
) -> None:
    """Whatever is rewritten parses, and the proof holds; everything else is refused in words."""
    source = Source(without_metavariables(given_code).encode() + b"\n", path="x.py")
    try:
        tree = ast.parse(source.text)
    except PARSE_ERRORS:
        outcomes.note("no code")
        return
    outline = Outline(source, tree)
    try:
        pattern = compile_pattern(wanted, ast.parse)
        found = find_pattern(outline, pattern, [Span(0, len(source.text))])
        text = "" if action == "delete" else template
        splices = rewrite_all(outline, [(match, action, text, 0) for match in found], parse=ast.parse)
        after = lay(source.text, splices)
        prove(outline, [(match, action, text) for match in found], after, ast.parse)
    except (PatternError, PlanError, PatchFileError) as error:
        assert_not_of_the_proof(error)
        outcomes.note("refused")
        return
    ast.parse(after)
    outcomes.note("rewritten" if found else "no match")


def records() -> tuple[bytes, bytes]:
    """A whole ledger and a whole journal."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        file = forged.ledger_file(b"a", b"bc", layers=[{"patch": "p1", "splices": [[0, 1, 2, "YQ=="]]}])
        ledger = forged.ledger(site, [forged.ledger_patch("1" * 64, ["demo/a.py"])], {"demo/a.py": file}).read_bytes()
        return ledger, forged.journal(site, [forged.journal_file("demo/a.py", "1" * 64, "2" * 64)]).read_bytes()


LEDGER, JOURNAL = records()


def resealed(data: bytes) -> bytes:
    """With a checksum that fits, as a forger writes it."""
    head, _, body = data.partition(b"\n")
    _, _, body = body.partition(b"\n")
    return head + b'\n"checksum": "crc32:%08x",\n' % zlib.crc32(body) + body


def leaves(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value, as (container, key)."""
    found = []
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        found.append((value, key))
        if isinstance(inner, dict | list):
            found += leaves(inner)
    return found


def tampered(data: bytes, seed: int) -> bytes:
    """One to three values exchanged or gone, the checksum right."""
    chance = random.Random(seed)
    value = json.loads(data)
    del value["checksum"]  # twice in a table, the last one counts
    for _ in range(chance.choice((1, 1, 2, 3))):
        container, key = chance.choice(leaves(value))
        odd = [None, 0, -1, 1 << 80, "", "../x", "/etc/x", "\x1b", "a\nb", [], {}, [[]], True, 1.5, "x" * 50, "\ud800"]
        if chance.random() < 0.2 and isinstance(container, dict):
            del container[key]
        elif chance.random() < 0.4:  # another value of that kind: nothing is wrong with it where no other goes by it
            container[key] = {str: "b" * 64, int: 7, list: [], dict: {}}.get(type(container[key]), container[key])
        else:
            container[key] = chance.choice(odd)
    body = json.dumps(value)[1:].encode()
    return resealed(b'{\n"checksum": "",\n' + body)


@comes_to("read", "refused")
@given(st.booleans(), st.booleans(), st.integers(0, 1 << 60))
@runs(1500)
def test_damaged_and_forged_ledgers(outcomes: Outcomes, forge: bool, seal: bool, seed: int) -> None:
    data = tampered(LEDGER, seed) if forge else mutated(LEDGER, seed)
    data = resealed(data) if seal and data.count(b"\n") > 1 else data
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ledger.json")
        try:
            value = ledgers.parse(data, path)
            ledgers.check_files(folder, value)
            ledgers.lost(value, ledgers.missing_blobs(folder, value))
            from_json(value, path).to_json()
        except SiteError as error:
            assert_told(error, "corrupt", "ledger-version")
            outcomes.note("refused")
        else:
            outcomes.note("read")


@comes_to("read", "refused")
@given(st.booleans(), st.booleans(), st.integers(0, 1 << 60))
@runs(600)
def test_damaged_and_forged_journals(outcomes: Outcomes, forge: bool, seal: bool, seed: int) -> None:
    data = tampered(JOURNAL, seed) if forge else mutated(JOURNAL, seed)
    data = resealed(data) if seal and data.count(b"\n") > 1 else data
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, ".patchkit"))
        Path(folder, ".patchkit", "journal.json").write_bytes(data)
        try:
            journals.load(folder)
        except SiteError as error:
            assert_told(error, "corrupt", "ledger-version")
            outcomes.note("refused")
        else:
            outcomes.note("read")


RECORD = record_bytes(
    [("demo/__init__.py", "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "0"), ("demo/a,b.py", "md5=abc", "x")]
)
METADATA = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nSummary: x\n\nText\n"


@comes_to("read", "not found", "refused")
@given(st.booleans(), st.integers(0, 1 << 60), st.sampled_from(["", "", "", "empty", "binary", "twin"]))
@runs(500)
def test_damaged_metadata_and_record(outcomes: Outcomes, metadata: bool, seed: int, harm: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder, "demo-1.0.dist-info")
        info.mkdir()
        (info / "METADATA").write_bytes(mutated(METADATA, seed) if metadata else METADATA)
        record = RECORD if metadata else mutated(RECORD, seed)
        (info / "RECORD").write_bytes(b"" if harm == "empty" else record + b"\0" if harm == "binary" else record)
        if harm == "twin":
            shutil.copytree(info, Path(folder, "demo-1.1.dist-info"))
        try:
            found = find_distribution(bare_site(Path(folder)), "demo")
            for path in found.record.paths() if found is not None else ():
                assert found is not None
                assert found.record.entry(path) is not None
        except PatchkitError as error:
            assert_told(error)
            outcomes.note("refused")
        else:
            outcomes.note("read" if found is not None else "not found")


PROJECT = b'[project]\nname = "x"\n[tool.patchkit]\npatches = ["patches", "more"]\napply = ["a-b", "c"]\n'


@comes_to("read", "passed over", "refused")
@given(st.integers(0, 1 << 60))
@runs(500)
def test_damaged_projects(outcomes: Outcomes, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pyproject.toml").write_bytes(mutated(PROJECT, seed))
        try:
            outcomes.note("read" if load_project(folder) is not None else "passed over")
        except PatchFileError:
            outcomes.note("refused")
