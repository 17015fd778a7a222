"""Changing a key or dropping a table of a patch file's text, with every other byte as it was."""

# ruff: noqa: E501 (a case to a line)

from __future__ import annotations

import tomllib

import pytest

from patchkit.author.splice import PatchText
from patchkit.errors import PatchFileError


def text_set(text: str, value: str, key: str = "find", rename: str | None = None) -> str:
    patch = PatchText(text.encode())
    patch.set_text(("edit", 1, key), value, rename=rename)
    return patch.data().decode()


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ('find = "a"  # why', "b", 'find = "b"  # why'),
        ("find='a'#why", "b", 'find="b"#why'),
        (r'find = "a \" # b" # why', "b", 'find = "b" # why'),
        ("find    = '''\na\nb\n''' # why", "a\n", "find    = '''\na\n''' # why"),
        ('find = """\na \\" \\"""\nb"""', "c", 'find = "c"'),
        ('find = """a""""" # two quotes at its end', "c", 'find = "c" # two quotes at its end'),
        ("find = '''\na = ''x''\n'''", "c\nd\n", "find = '''\nc\nd\n'''"),
        ("find = '''a''''' # two quotes at its end", "c", 'find = "c" # two quotes at its end'),
        ('find = "a"', "b\n", "find = '''\nb\n'''"),
    ],
)
def test_a_string_in_the_place_of_another(before: str, value: str, after: str) -> None:
    head, tail = '# top\n[[edit]]\nfile = "x.py"  # file\n', '\nreplace = "r"\n\n# end\n'
    assert text_set(head + before + tail, value) == head + after + tail
    assert tomllib.loads(head + after + tail)["edit"][0]["find"] == value


@pytest.mark.parametrize(
    ("before", "name", "after"),
    [
        ('replace = "a"', "insert_after", 'insert_after = "b"'),
        ('insert_after = "a"', "replace", 'replace = "b"'),
        ('file    = "x"\nreplace = "a"', "insert_after", 'file    = "x"\ninsert_after = "b"'),
        ('file         = "x"\ninsert_after = "a"', "replace", 'file         = "x"\nreplace      = "b"'),
        ('replace="a"', "insert_after", 'insert_after="b"'),
        ('  replace = "a"', "delete", '  delete = "b"'),
    ],
)
def test_a_key_gets_another_name(before: str, name: str, after: str) -> None:
    key = before.rpartition("\n")[2].split("=")[0].strip()
    assert text_set(f"[[edit]]\n{before}\n", "b", key, name) == f"[[edit]]\n{after}\n"


@pytest.mark.parametrize(
    "text", ['edit = [{find = "a"}]\n', '[[edit]]\n"find" = "a"\n', "[[edit]]\nfind = 1\n", '[[edit]]\nfile = "x"\n']
)
def test_what_is_not_written_plainly_is_left_to_a_person(text: str) -> None:
    with pytest.raises(PatchFileError, match="not written as a string"):
        text_set(text, "b")


THREE = """\
# top

[[edit]]
find = "a"

# about b
[[edit]]
find = "b"
[[edit.example]]
before = "b"

# about c

[[edit]]
find = "c" # c
"""


@pytest.mark.parametrize(
    ("index", "after"),
    [
        (1, '# top\n\n# about b\n[[edit]]\nfind = "b"\n[[edit.example]]\nbefore = "b"\n\n# about c\n\n[[edit]]\nfind = "c" # c\n'),
        (2, '# top\n\n[[edit]]\nfind = "a"\n\n# about b\n# about c\n\n[[edit]]\nfind = "c" # c\n'),
        (3, '# top\n\n[[edit]]\nfind = "a"\n\n# about b\n[[edit]]\nfind = "b"\n[[edit.example]]\nbefore = "b"\n\n# about c\n'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_table_is_dropped(index: int, after: str, newline: str) -> None:
    patch = PatchText(b"\xef\xbb\xbf" + THREE.replace("\n", newline).encode())
    patch.drop("edit", index)
    assert patch.data() == b"\xef\xbb\xbf" + after.replace("\n", newline).encode()


def test_a_table_without_a_header_is_not_dropped() -> None:
    with pytest.raises(PatchFileError, match="header"):
        PatchText(b'edit = [{find = "a"}]\n').drop("edit", 1)
