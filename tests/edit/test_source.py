from __future__ import annotations

import codecs

import pytest

from patchkit.edit.source import ByteSplice, Source, Splice, python_encoding
from patchkit.errors import PlanError


def test_line_breaks_are_normalised_and_only_the_three_count() -> None:
    source = Source(b"a\r\nb\rc\nd\x0be\x0cf\xe2\x80\xa8g")
    assert source.text == "a\nb\nc\nd\x0be\x0cf\u2028g"
    assert source.starts == [0, 2, 4, 6]
    assert source.mixed


def test_lines_and_columns() -> None:
    source = Source("ä = 1\nxyz\n".encode())
    assert [source.line(p) for p in (0, 5, 6, 9, 10)] == [1, 1, 2, 2, 3]
    assert source.column(8) == 3
    assert (source.line_start(8), source.line_end(8)) == (6, 10)
    assert source.line_text(2) == "xyz"
    assert source.line_text(3) == ""


def test_ast_columns_count_utf8_bytes() -> None:
    source = Source('s = "äöü"; x = 1\n'.encode())
    assert source.position(1, 14) == 11
    assert source.text[11:] == "x = 1\n"


def test_byte_offsets_follow_bom_encoding_and_newlines() -> None:
    source = Source(codecs.BOM_UTF8 + "ä\r\nb".encode())
    assert (source.bom, source.text) == (3, "ä\nb")
    assert [source.byte(p) for p in range(4)] == [3, 5, 7, 8]


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"x = 1\n", "utf-8"),
        (b"# -*- coding: latin-1 -*-\n", "iso8859-1"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n", "cp1252"),
        (b"x = 1\n# coding: latin-1\n", "utf-8"),
        (b"\n\n# coding: latin-1\n", "utf-8"),
        (b"\r# coding: latin-1\n", "iso8859-1"),
    ],
)
def test_cookies(data: bytes, encoding: str) -> None:
    assert python_encoding(data) == (encoding, 0)


def test_cookie_errors() -> None:
    with pytest.raises(LookupError):
        python_encoding(b"# coding: no-such-thing\n")
    with pytest.raises(ValueError, match="byte order mark"):
        python_encoding(codecs.BOM_UTF8 + b"# coding: latin-1\n")


def test_only_python_files_have_cookies() -> None:
    data = b"# coding: latin-1\n\xe4\n"
    assert Source(data, path="a.py").text.endswith("ä\n")
    assert not Source(data, path="a.txt").decodes


def test_undecodable_bytes_survive() -> None:
    source = Source(b"a = 1 # \xff\nb = 2\n", path="a.py")
    assert not source.decodes
    start = source.text.index("b = 2")
    after, done = source.render([Splice(start, start + 5, "b = 3")])
    assert after == b"a = 1 # \xff\nb = 3\n"
    assert done == [ByteSplice(10, 15, b"b = 2", b"b = 3")]


def test_render_writes_the_files_own_newline() -> None:
    source = Source(b"a\r\nb\r\n")
    after, done = source.render([Splice(2, 4, "x\ny\n")])
    assert after == b"a\r\nx\r\ny\r\n"
    assert done == [ByteSplice(3, 6, b"b\r\n", b"x\r\ny\r\n")]


def test_render_in_a_mixed_file_keeps_each_lines_newline() -> None:
    source = Source(b"a\nb\r\nc\n")
    after, _ = source.render([Splice(0, 6, "A\nB\nC\n")])
    assert after == b"A\nB\r\nC\n"


def test_text_that_the_encoding_cannot_hold_is_an_error_with_its_line() -> None:
    source = Source(b"# coding: latin-1\nx = 1\n", path="a.py")
    with pytest.raises(PlanError, match="cannot hold '€'") as caught:
        source.render([Splice(18, 23, "x = '€'", 4)])
    assert caught.value.code == "encoding"
    assert caught.value.details == {"path": "a.py", "line": 2, "edit": 4}


@pytest.mark.parametrize(
    ("splice", "expected"),
    [
        # A line that stays keeps its own break, wherever it comes to stand.
        (Splice(0, 18, "a = 1\nnew = 0\nb = 2\nc = 3\n"), b"a = 1\r\nnew = 0\r\nb = 2\nc = 3\r\n"),
        (Splice(0, 18, "a = 1\nc = 3\n"), b"a = 1\r\nc = 3\r\n"),
        # What is inserted after a line is broken like that line, what is inserted before one like that.
        (Splice(12, 12, "q\n", 0, -1), b"a = 1\r\nb = 2\nq\nc = 3\r\n"),
        (Splice(12, 12, "q\n", 0, 1), b"a = 1\r\nb = 2\nq\r\nc = 3\r\n"),
    ],
)
def test_breaks_in_a_mixed_file(splice: Splice, expected: bytes) -> None:
    source = Source(b"a = 1\r\nb = 2\nc = 3\r\n", path="x.txt")
    assert source.render([splice])[0] == expected


@pytest.mark.parametrize("codec", ["rot13", "hex", "zlib", "uu", "base64", "idna", "undefined"])
def test_a_cookie_that_names_no_encoding_of_text(codec: str) -> None:
    """Python refuses such a file, too; a text edit does without."""
    data = f"# coding: {codec}\nx = 1\n".encode()
    source = Source(data, path="a.py")
    start = source.text.index("x = 1")
    after, _ = source.render([Splice(start, start + 5, "x = 2")])
    assert after == data.replace(b"x = 1", b"x = 2")


@pytest.mark.parametrize("codec", ["iso2022_jp", "iso2022_jp_2", "iso2022_kr", "hz", "utf-7"])
def test_an_encoding_with_a_shift_state(codec: str) -> None:
    """Whatever a splice makes of the bytes reads as the text that was meant, or is refused."""
    data = f"# coding: {codec}\na = 'アイウ'\nb = 'x'  # アイ\n".encode(codec)
    text = data.decode(codec)
    source = Source(data, path="a.py")
    done = refused = 0
    first = text.index("\n") + 1
    for start in range(first, len(text) + 1):
        for end in range(start, len(text) + 1):
            try:
                after, splices = source.render([Splice(start, end, "q")])
            except PlanError as error:
                refused += error.code == "encoding"
            else:
                assert after.decode(codec) == text[:start] + "q" + text[end:]
                assert data[: splices[0].start] == after[: splices[0].start]
                done += 1
    assert bool(done) == codec.startswith(("iso2022_jp", "hz"))  # the others shift over the ends of lines
    assert refused


def test_two_line_breaks_do_not_become_one() -> None:
    source = Source(b"a\rb\nc\r\n", path="x.txt")
    with pytest.raises(PlanError, match=r"line 2 would make one line break of two, a \\r and a \\n") as caught:
        source.render([Splice(2, 3, "", 7)])
    assert caught.value.details == {"path": "x.txt", "line": 2, "edit": 7}
    assert source.render([Splice(0, 4, "")])[0] == b"c\r\n"
