"""What does not fit is refused with the exit status of its kind, says where, and leaves every byte."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.bench import CORE, Bench

LATIN = b"# -*- coding: latin-1 -*-\nNAME = 'caf\xe9'\n"


def refused(bench: Bench, name: str = "p") -> dict[str, object]:
    run = bench.json("apply", name)
    assert run.json["ok"] is False
    assert bench.pristine()
    assert run.error["hint"]
    return {"status": run.status, **run.error}


def test_an_anchor_that_is_nowhere(bench: Bench) -> None:
    bench.patch("p", '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + z"\nreplace = "y = 0"\n')
    error = refused(bench)
    assert (error["status"], error["code"]) == (4, "anchor-missing")
    assert (error["found"], error["expected"]) == (0, 1)
    assert str(error["message"]).split("\n")[0].endswith("`find` matches nowhere in demo/core.py, expected 1")
    assert "y = x + x" in str(error["message"])  # the nearest candidate


def test_an_anchor_that_is_there_too_often(bench: Bench) -> None:
    bench.patch("p", '[[edit]]\nfile = "demo/core.py"\nfind = "return result"\nreplace = "return 0"\n')
    error = refused(bench)
    assert (error["status"], error["code"], error["found"]) == (4, "anchor-count", 2)
    assert "Worker.run" in str(error["message"])
    assert "Worker.stop" in str(error["message"])


def test_edits_that_overlap(bench: Bench) -> None:
    bench.patch(
        "p",
        '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
        '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "x"\n',
    )
    error = refused(bench)
    assert (error["status"], error["code"], error["edits"]) == (4, "overlap", [1, 2])


def test_a_result_that_does_not_parse(bench: Bench) -> None:
    bench.patch("p", '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = ("\n')
    error = refused(bench)
    assert (error["status"], error["code"], error["path"]) == (4, "syntax", "demo/core.py")
    assert "demo/core.py would not parse any more" in str(error["message"])


def test_an_added_file_that_does_not_parse(bench: Bench) -> None:
    bench.patch("p", '[[add]]\nfile = "demo/extra.py"\ncontent = "def ("\n')
    error = refused(bench)
    assert (error["status"], error["code"]) == (4, "syntax")
    assert not (bench.site / "demo/extra.py").exists()


def test_a_file_that_never_parsed_may_be_edited_as_text(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"demo/old.py": 'print "one"\nprint "two"\n'})
    bench.patch("p", '[[edit]]\nfile = "demo/old.py"\nfind = "one"\nreplace = "three"\n')
    assert bench("apply", "p").status == 0
    assert bench.read("demo/old.py") == b'print "three"\nprint "two"\n'
    assert bench("revert", "p").status == 0
    assert bench.pristine()


def test_a_text_that_the_encoding_cannot_hold(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"demo/latin.py": LATIN})
    bench.patch("p", '[[edit]]\nfile = "demo/latin.py"\nfind = "café"\nreplace = "日本"\n')
    error = refused(bench)
    assert error["status"] == 4
    assert error["message"] == (
        f"{bench.patches}/p.toml:10: edit 1: `replace`: "
        "its encoding iso8859-1 cannot hold '日本' (demo/latin.py, line 2)"
    )


def test_an_encoding_that_can_hold_the_text(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"demo/latin.py": LATIN})
    bench.patch("p", '[[edit]]\nfile = "demo/latin.py"\nfind = "café"\nreplace = "thé"\n')
    assert bench("apply", "p").status == 0
    assert bench.read("demo/latin.py") == b"# -*- coding: latin-1 -*-\nNAME = 'th\xe9'\n"
    assert bench("revert", "p").status == 0
    assert bench.pristine()


def test_a_bom_stays(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"demo/bom.py": b"\xef\xbb\xbfA = 1\r\nB = 2\r\n"})
    bench.patch("p", '[[edit]]\nfile = "demo/bom.py"\nfind = "A = 1\\n"\nreplace = "A = 3\\n"\n')
    assert bench("apply", "p").status == 0
    assert bench.read("demo/bom.py") == b"\xef\xbb\xbfA = 3\r\nB = 2\r\n"
    assert bench("revert", "p").status == 0
    assert bench.pristine()


def test_a_file_that_is_not_the_distributions(bench: Bench) -> None:
    (bench.site / "stray.py").write_text("A = 1\n")
    bench.patch("p", '[[edit]]\nfile = "stray.py"\nfind = "A = 1"\nreplace = "A = 2"\n')
    error = refused(bench)
    assert (error["status"], error["code"]) == (4, "not-in-distribution")
    assert bench.read("stray.py") == b"A = 1\n"


@pytest.mark.parametrize("path", ["../outside.py", "/etc/hosts", "demo/../../outside.py"])
@pytest.mark.parametrize("table", ["edit", "add", "precondition"])
def test_a_path_that_leads_out(bench: Bench, path: str, table: str) -> None:
    (bench.root / "outside.py").write_text("A = 1\n")
    body = {
        "edit": f'[[edit]]\nfile = "{path}"\nfind = "A = 1"\nreplace = "A = 2"\n',
        "add": f'[[add]]\nfile = "{path}"\ncontent = ""\n',
        "precondition": f'[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "x"\n'
        f'[[precondition]]\nfile = "{path}"\nfind = "A"\n',
    }[table]
    bench.patch("p", body)
    error = refused(bench)
    assert error["status"] == 2
    assert (bench.root / "outside.py").read_text() == "A = 1\n"


def test_a_precondition(bench: Bench) -> None:
    edit = '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n'
    bench.patch("p", edit + '[[precondition]]\nfile = "demo/util.py"\nfind = "Z = 4"\n')
    error = refused(bench)
    assert (error["status"], error["code"], error["found"], error["expected"]) == (4, "precondition", 0, "1")
    bench.patch("p", edit + '[[precondition]]\nfile = "demo/util.py"\nfind = " = "\ncount = "1+"\n')
    assert bench("apply", "p").status == 0


def test_a_postcondition_holds_on_the_planned_bytes(bench: Bench) -> None:
    edit = '[[edit]]\nfile = "demo/core.py"\nfind = "return result"\nreplace = "return 0"\ncount = 2\nnth = 1\n'
    after = '[[postcondition]]\nfile = "demo/core.py"\nfind = "return result"\ncount = {}\n'
    bench.patch("p", edit + after.format(0))
    error = refused(bench)
    assert (error["status"], error["code"], error["found"], error["expected"]) == (4, "postcondition", 1, "0")
    bench.patch("p", edit + after.format(1))
    assert bench("apply", "p").status == 0


def test_a_list_of_files_is_the_same_edit_in_each(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({"demo/a.py": "A = 1\n", "demo/b.py": "A = 1\nB = 1\n", "demo/c.py": "B = 1\n"})
    bench.patch("p", '[[edit]]\nfile = ["demo/a.py", "demo/b.py"]\nfind = "A = 1\\n"\nreplace = "A = 2\\n"\n')
    assert bench("apply", "p").out == "applied p  (demo 1.0)\n  demo/a.py:1\n  demo/b.py:1\n"
    assert bench.read("demo/a.py") == b"A = 2\n"
    assert bench.read("demo/b.py") == b"A = 2\nB = 1\n"
    bench("revert", "p")
    assert bench.pristine()
    bench.patch("p", '[[edit]]\nfile = ["demo/a.py", "demo/c.py"]\nfind = "A = 1\\n"\nreplace = "A = 2\\n"\n')
    assert refused(bench)["path"] == "demo/c.py"


def test_the_place_of_a_wrong_patch_file_is_named(bench: Bench) -> None:
    bench.patch("p", '[[edit]]\nfile = "demo/core.py"\nfnd = "x"\nreplace = "y"\n')
    run = bench("apply", "p")
    assert run.status == 2
    assert "p.toml:9" in run.err
    assert 'unknown key "fnd" (did you mean "find"?)' in run.err
    assert run.err.endswith(
        f"hint: correct it there; `patchkit lint {bench.patches}/p.toml` says whether it is right then\n"
    )
    assert bench.read("demo/core.py") == CORE.encode()


@pytest.mark.parametrize(
    "body",
    [
        '[[edit]]\nfile = "demo/core.py"\nfind = ""\nreplace = "x"\n',
        '[[edit]]\nfile = "demo/core.py"\nfind = "x"\nreplace = "y"\ndelete = true\n',
        "[[edit]\n",
    ],
    ids=["empty anchor", "two actions", "no TOML"],
)
def test_a_wrong_patch_file_exits_2(bench: Bench, body: str) -> None:
    bench.patch("p", body)
    assert refused(bench)["status"] == 2


def test_all_edits_see_the_file_as_it_was(bench: Bench) -> None:
    swap = (
        '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1\\n"\nreplace = "Y = 2\\n"\n'
        '[[edit]]\nfile = "demo/util.py"\nfind = "Y = 2\\n"\nreplace = "X = 1\\n"\n'
    )
    bench.patch("p", swap)
    assert bench("apply", "p").status == 0
    assert bench.read("demo/util.py") == b"Y = 2\r\nX = 1\r\nZ = 3\r\n"


def test_a_patch_that_breaks_a_file_is_told_also_where_the_next_one_needs_its_tree(bench: Bench) -> None:
    bench.patch("breaks", '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = ("\n')
    bench.patch("next", '[[edit]]\nfile = "demo/core.py"\nmatch = "double($X)"\nreplace = "triple($X)"\n')
    error = bench.json("apply", "breaks", "next").error
    assert (error["code"], error["patch"], error["index"]) == ("syntax", "breaks", 1)
    assert bench.pristine()
