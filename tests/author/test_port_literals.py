"""``port`` and the text of code: strings and comments are no layout."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.bench import Bench
from support.porting import EDIT, OLD, Porter


@pytest.fixture
def porter(bench: Bench, tmp_path: Path) -> Porter:
    return Porter(bench, tmp_path / "cache")


TABLE = 'UNITS = (\n    " kB",\n    " MB",\n    " GB",\n)\n\n\ndef show(n):\n    return n\n'


def test_blanks_within_a_string_are_no_layout(porter: Porter) -> None:
    """As in humanize 4.16: the blank went from the suffixes to where they are used."""
    porter.release("1.0", {"demo/core.py": TABLE})
    path = porter.patch('[[edit]]\nfile = "demo/core.py"\nfind = \'" kB"\'\nreplace = \'" KB"\'\n')
    before = path.read_bytes()
    for new in (TABLE.replace('" ', '"'), TABLE.replace('" kB"', '"  kB"'), TABLE.replace('" kB"', '" KB"')):
        porter.release("2.0", {"demo/core.py": new})
        run = porter("--write")
        assert (run.status, run.json["state"], run.json["written"]) == (1, "decide", None), new
    assert path.read_bytes() == before
    # Laid out anew, with quotes of the other kind, it is the same string.
    for new in (TABLE.replace("    ", ""), TABLE.replace("\n    ", "\n        ")):
        porter.release("2.0", {"demo/core.py": new})
        run = porter()
        assert (run.status, run.json["parts"][0]["state"]) == (0, "fits")


TEXT = '''\
def usage(name):
    size = 1
    text = """
    Call it so:
        run(size)
    """
    tail = "a \\
        b"
    call(
        text,
        name, tail
    )
    return text
'''


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("        run(size)", "        run(size, 1)"),  # in a string: what it says
        ("    call(\n        text,\n        name, tail\n    )", "    call(\n        text, name, tail, 1\n    )"),
        ('        b"', '        c"'),
    ],
)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        run(size)", "    run(size)"),  # another text, stripped the same
        ("        run(size)", "        run(size) "),
        ('        b"', '    b"'),
        ("        text,\n        name, tail\n", "        text, name, tail,\n"),  # the same code
        ("call(\n        text,", "call((\n        text,),"),
        ("        text,\n        name, tail\n", "        text,  # new\n        name, tail\n"),
        ("    call(\n        text,\n        name, tail\n    )", "    call(\n  text,\n  name,\n  tail\n )"),
        ("    return text", "\treturn text"),
    ],
)
def test_a_literal_is_carried_as_it_stands_or_not_at_all(
    porter: Porter, line: str, other: str, old: str, new: str
) -> None:
    """Whatever became of another line, the result says what the new release says, with the change and nothing else."""
    import ast

    porter.release("1.0", {"demo/core.py": TEXT})
    # Anchored at the whole function: no release but the old one fits as it is, and the change must be carried.
    texts = _toml(TEXT), _toml(TEXT.replace(line, other))
    porter.patch(f'[[edit]]\nfile = "demo/core.py"\nfind = """{texts[0]}"""\nreplace = """{texts[1]}"""\n')
    there = TEXT.replace(old, new)
    if "\t" in there:
        there = there.replace("    ", "\t")
    porter.release("2.0", {"demo/core.py": there})
    run = porter("--write")
    if run.status == 1:
        assert run.json["state"] == "decide"
        return
    result = porter.result("2.0", {"demo/core.py": there})
    wanted = ast.dump(ast.parse(there))
    # The change, made on the syntax tree of the new release by hand.
    for was, becomes in (("run(size)", "run(size, 1)"), ("b'", "c'")):
        if was.rstrip("'") in line.strip() and "call" not in line:
            wanted = wanted.replace(was, becomes)
    if "call" in line:
        one = ast.dump(ast.parse("tail", mode="eval").body)
        wanted = wanted.replace(f"{one}], keywords", f"{one}, {ast.dump(ast.Constant(1))}], keywords")
    assert ast.dump(ast.parse(result)) == wanted


def _toml(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def test_a_renamed_name_that_the_text_speaks_of_in_a_string_is_for_a_person(porter: Porter) -> None:
    """The name in an f-string would be gone, that in a message wrong; neither is in the code that was renamed."""
    porter.patch(EDIT.replace("size + 1)", 'size + 1, f"{size}")'))
    porter.release("2.0", {"demo/core.py": OLD.replace("size", "length")})
    run = porter()
    assert (run.status, run.json["state"]) == (1, "decide")
    porter.patch(EDIT.replace("self.work(job, size + 1)", "self.work(job, 2)"))
    assert porter().status == 0


def test_code_that_went_into_another_block_is_for_a_person(porter: Porter) -> None:
    old = "def run(job):\n    first(job)\n    if job:\n        second(job)\n    third(job)\n    return job\n"
    lines = "        second(job)\n    third(job)\n"
    porter.release("1.0", {"demo/core.py": old})
    porter.patch(
        f'[[edit]]\nfile = "demo/core.py"\nfind = """{lines}    return job"""\nreplace = """{lines}    go()"""'
    )
    # The neighbours are as they were, but for their depth.
    porter.release(
        "2.0", {"demo/core.py": old.replace("    third(job)\n    return", "        third(job)\n        return")}
    )
    run = porter()
    assert (run.status, run.json["state"]) in ((0, "ported"), (1, "decide"))
    porter.patch(
        '[[edit]]\nfile = "demo/core.py"\n'
        f'find = """{lines}"""\nreplace = """        second(job)\n    between(job)\n    third(job)\n"""'
    )
    run = porter()
    assert (run.status, run.json["state"]) == (1, "decide")


def test_tokens_are_equal_only_where_the_code_is() -> None:
    import ast

    from patchkit.author.tokens import code_of

    def tokens(text: str) -> list[str]:
        return code_of(text, True).between(0, text.count("\n") + 1)

    same = [
        ("f(a, b)\n", "f(\n    a,\n    b,\n)\n"),
        ("x = ['a', 'b']\n", 'x = ["a",\n     "b",]\n'),
        ("x = {1: 2}\n", "x = {1: 2,}\n"),
        ("x = (a, b)\n", "x = (a, b,)\n"),
        ("if a:\n    b\nc\n", "if a:\n  b\n\nc\n"),
    ]
    other = [
        ("x = (a)\n", "x = (a,)\n"),
        ("x[a]\n", "x[a,]\n"),
        ("x = ' a'\n", "x = 'a'\n"),
        ("x = 'a'\n", "x = b'a'\n"),
        ("x = f' {a}'\n", "x = f'{a}'\n"),
        ("x = '''a\n b'''\n", "x = '''a\n  b'''\n"),
        ("x = 'a b'\n", "x = 'a' 'b'\n"),
        ("a\n(b)\n", "a(b)\n"),
        ("if a:\n    b\nc\n", "if a:\n    b\n    c\n"),
        ("for a in (b,): pass\n", "for a in (b): pass\n"),
        ("a = b\nc = d\n", "a = b; c = d\n"),
    ]
    for one, two in same:
        assert ast.dump(ast.parse(one)) == ast.dump(ast.parse(two))
        assert tokens(one) == tokens(two), (one, two)
    for one, two in other:
        assert tokens(one) != tokens(two), (one, two)
