"""``port`` on wheels made by hand: what is carried, what is left to a person, and what is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.bench import Bench
from support.porting import EDIT, OLD, Porter

from patchkit.author.align import Alignment, renames
from patchkit.author.splice import PatchText
from patchkit.errors import PatchFileError
from patchkit.model.load import load_patch


@pytest.fixture
def porter(bench: Bench, tmp_path: Path) -> Porter:
    return Porter(bench, tmp_path / "cache")


def test_what_fits_is_left_alone_and_the_requirement_widened(porter: Porter) -> None:
    path = porter.patch()
    porter.release("2.0", {"demo/core.py": "# new\n" + OLD})
    run = porter()
    assert (run.status, run.json["state"], run.json["requirement"]) == (0, "ported", "demo>=1.0,<2.1")
    (part,) = run.json["parts"]
    assert (part["state"], part["old_line"], part["new_line"]) == ("fits", 13, 14)
    before = path.read_bytes()
    assert run.json["written"] is None
    assert porter("--write").json["written"] == str(path)
    assert path.read_bytes() == before.replace(b"demo>=1.0,<2", b"demo>=1.0,<2.1")
    again = porter()
    assert (again.status, again.json["state"], again.json["diff"]) == (0, "fits", None)


def test_changed_lines_around_the_change_are_left_out_of_the_new_anchor(porter: Porter) -> None:
    path = porter.patch("# why\n" + EDIT + "# the end\n")
    new = OLD.replace("        self.done += 1\n", "        self.count(1)\n")
    porter.release("2.0", {"demo/core.py": new})
    before = path.read_text()
    run = porter("--write")
    assert (run.status, run.json["state"]) == (0, "ported")
    (part,) = run.json["parts"]
    assert (part["state"], part["code"], part["new_line"]) == ("ported", "anchor-missing", 14)
    assert part["evidence"] == ["the same lines, once before and now"]
    assert part["variant"]["find"] == "        result = self.work(job, size)\n"
    assert part["variant"]["scope"] == "Worker.run"
    after = path.read_text()
    # What was there is there, but for the requirement and the bound of the old edit.
    kept = (
        before.replace("<2", "<2.1").replace("find    = ", 'versions = "<2.0"\nfind    = ').replace("# the end\n", "")
    )
    assert after.startswith(kept)
    assert after.endswith("# the end\n")
    old_edit, new_edit = load_patch(str(path)).edits
    assert (old_edit.versions, new_edit.versions) == ("<2.0", ">=2.0")
    assert porter.result("1.0", {"demo/core.py": OLD}) == OLD.replace("size)", "size + 1)")
    assert porter.result("2.0", {"demo/core.py": new}) == new.replace("size)", "size + 1)")


def test_the_new_edit_begins_where_the_old_one_ceases_to_fit(porter: Porter) -> None:
    path = porter.patch()
    new = OLD.replace("        self.done += 1\n", "        self.count(1)\n")
    porter.release("1.4", {"demo/core.py": OLD})
    for version in ("1.6", "1.8", "2.0"):
        porter.release(version, {"demo/core.py": new})
    run = porter("--write", "--from", "1.0")
    assert run.json["parts"][0]["since"] == "1.6"
    assert [(one["version"], one["fits"]) for one in run.json["between"]] == [
        ("1.8", True),
        ("1.6", True),
        ("1.4", True),
    ]
    assert [edit.versions for edit in load_patch(str(path)).edits] == ["<1.6", ">=1.6"]
    for version, text in (("1.4", OLD), ("1.6", new), ("1.8", new)):
        assert porter.result(version, {"demo/core.py": text}) == text.replace("size)", "size + 1)")


def test_a_release_in_between_that_it_does_not_fit_is_named(porter: Porter) -> None:
    porter.patch()
    porter.release("1.5", {"demo/core.py": OLD.replace("self.work(job, size)", "self.work(job)")})
    porter.release("1.6", {"demo/core.py": OLD})
    porter.release("2.0", {"demo/core.py": "# new\n" + OLD})
    run = porter("--from", "1.0")
    assert [(one["version"], one["fits"]) for one in run.json["between"]] == [("1.6", True), ("1.5", False)]
    assert "matches nowhere" in run.json["between"][1]["reason"]
    said = " ".join(porter.bench("port", "fix", "--to", "2.0", "--from", "1.0", "--offline").out.split())
    assert "in between, it applies to 1.6, which the cache has" in said
    assert "look: it does not fit 1.5: `find` matches nowhere in demo/core.py" in said


def test_in_place_gives_the_old_release_up(porter: Porter) -> None:
    path = porter.patch()
    porter.release("2.0", {"demo/core.py": OLD.replace("        self.done += 1\n", "        self.count(1)\n")})
    assert porter("--in-place", "--write").status == 0
    patch = load_patch(str(path))
    assert (len(patch.edits), patch.target.requirement) == (1, "demo>=2.0,<2.1")
    assert patch.edits[0].versions is None


def test_a_name_that_changed_throughout_is_carried_into_the_replacement(porter: Porter) -> None:
    porter.patch()
    new = OLD.replace("size", "length")
    porter.release("2.0", {"demo/core.py": new})
    run = porter("--write")
    assert run.status == 0, run.out
    assert run.json["parts"][0]["evidence"][0] == "names changed throughout: size is length now"
    assert porter.result("2.0", {"demo/core.py": new}) == new.replace("(job, length)", "(job, length + 1)")


def test_a_name_that_is_still_used_is_not_taken_for_renamed() -> None:
    old = ["a = size(b)\n", "c = size\n"]
    assert renames(old, ["a = length(b)\n", "c = length\n"]) == {"size": "length"}
    assert renames(old, ["a = length(b)\n", "c = size\n"]) == {}
    assert renames(old, ["a = length(b)\n", "c = width\n"]) == {}
    assert renames([*old, "d = length\n"], ["a = length(b)\n", "c = length\n", "d = length\n"]) == {}
    assert renames(["x = one + two\n", "y = one + two\n"], ["x = both + both\n", "y = both + both\n"]) == {}
    # One line alone, and what stands in a string, is a change.
    assert renames(["a = size(b)\n"], ["a = length(b)\n"]) == {}
    assert renames(['A = "awq"\n', 'B = "awq"\n'], ['A = "auto"\n', 'B = "auto"\n']) == {}


def test_a_method_with_another_name_is_found_by_its_lines(porter: Porter) -> None:
    porter.patch()
    new = OLD.replace("def run(self, job)", "def execute(self, job)")
    porter.release("2.0", {"demo/core.py": new})
    run = porter("--write")
    assert run.status == 0, run.out
    (part,) = run.json["parts"]
    assert part["code"] == "scope-missing"
    assert part["evidence"][0] == "Worker.run is gone, and Worker.execute is new with 83% of its lines"
    assert part["variant"]["scope"] == "Worker.execute"
    # The edit stays as it was written, but for its scope.
    assert part["variant"]["find"] == load_patch(str(porter.bench.patches / "fix.toml")).edits[0].find
    assert porter.result("2.0", {"demo/core.py": new}) == new.replace("size)", "size + 1)")


def test_a_file_that_was_split_is_followed_and_so_are_the_conditions(porter: Porter) -> None:
    condition = '[[precondition]]\nfile = "demo/core.py"\nscope = "Worker.run"\nfind = "len(job)"\ncount = 1\n'
    path = porter.patch(EDIT + condition)
    files = {"demo/core.py": "from demo.worker import Worker\n", "demo/worker.py": OLD}
    porter.release("2.0", files)
    run = porter("--write")
    assert run.status == 0, run.out
    edit, follower = run.json["parts"]
    assert (edit["path"], edit["evidence"][0]) == ("demo/worker.py", "Worker.run is in this file now")
    assert (follower["table"], follower["state"], follower["path"]) == ("precondition", "ported", "demo/worker.py")
    assert [c.versions for c in load_patch(str(path)).preconditions] == ["<2.0", ">=2.0"]
    assert porter.result("2.0", files, "demo/worker.py") == OLD.replace("size)", "size + 1)")
    assert porter.result("1.0", {"demo/core.py": OLD}) == OLD.replace("size)", "size + 1)")


def test_two_files_that_it_could_go_to_are_for_a_person_to_choose_from(porter: Porter) -> None:
    path = porter.patch()
    before = path.read_bytes()
    porter.release("2.0", {"demo/core.py": "x = 1\n", "demo/a.py": OLD, "demo/b.py": OLD})
    run = porter("--write")
    assert (run.status, run.json["state"], run.json["written"]) == (1, "decide", None)
    assert "it could go to demo/a.py and to demo/b.py" in run.json["parts"][0]["reason"]
    assert path.read_bytes() == before


def test_one_of_several_definitions_so_called_is_not_followed_to_another_file(porter: Porter) -> None:
    """A new file holds a copy of the other file's, not ours, which is gone."""
    porter.patch()
    porter.release("1.0", {"demo/core.py": OLD, "demo/fast.py": OLD})
    porter.release("2.0", {"demo/core.py": "x = 1\n", "demo/fast.py": OLD, "demo/faster.py": OLD})
    run = porter()
    assert (run.status, run.json["state"]) == (1, "decide")
    # A class of another name with a method of that name is another definition.
    other = OLD.replace("class Worker", "class Other")
    porter.release("1.0", {"demo/core.py": OLD, "demo/fast.py": other})
    porter.release("2.0", {"demo/core.py": "x = 1\n", "demo/fast.py": other, "demo/worker.py": OLD})
    assert porter().json["parts"][0]["path"] == "demo/worker.py"


def test_a_definition_that_is_still_there_is_not_looked_for_in_other_files(porter: Porter) -> None:
    """The line was changed, and a new file has another function so called with a line like the old one."""
    porter.patch()
    new = OLD.replace("self.work(job, size)", "self.work(job, size, fast=True)")
    porter.release("2.0", {"demo/core.py": new, "demo/copy.py": OLD})
    run = porter()
    assert (run.status, run.json["parts"][0]["path"]) == (1, "demo/core.py")
    assert "lines that the edit changes" in run.json["parts"][0]["reason"]


def test_the_same_code_laid_out_anew_is_found(porter: Porter) -> None:
    porter.patch(EDIT.replace("        size = len(job)\n", "").replace("        self.done += 1\n", ""))
    laid = "        result = self.work(\n            job,\n            size,\n        )\n"
    new = OLD.replace("        result = self.work(job, size)\n", laid)
    porter.release("2.0", {"demo/core.py": new})
    run = porter("--write")
    assert run.status == 0, run.out
    assert run.json["parts"][0]["evidence"] == ["the same code, laid out anew"]
    expected = OLD.replace("size)", "size + 1)")
    assert porter.result("2.0", {"demo/core.py": new}) == expected


def test_a_changed_line_is_shown_side_by_side_and_left_to_a_person(porter: Porter) -> None:
    path = porter.patch()
    before = path.read_bytes()
    porter.release("2.0", {"demo/core.py": OLD.replace("self.work(job, size)", "self.work(job, size, fast=True)")})
    run = porter("--write")
    assert (run.status, run.json["state"]) == (1, "decide")
    (part,) = run.json["parts"]
    assert part["old_lines"] == [
        "        size = len(job)\n",
        "        result = self.work(job, size)\n",
        "        self.done += 1\n",
    ]
    assert part["new_lines"][1] == "        result = self.work(job, size, fast=True)\n"
    assert path.read_bytes() == before
    assert part["change"] == [
        "-        result = self.work(job, size)\n",
        "+        result = self.work(job, size + 1)\n",
    ]
    line = "        result = self.work(job, size, fast=True)\n"
    assert part["draft"] == (
        '[[edit]]\nfile     = "demo/core.py"\nscope    = "Worker.run"\nversions = ">=2.0"\n'
        f"find     = '''\n{line}'''\nreplace  = '''\n{line}'''\n"
    )
    text = porter.bench("port", "fix", "--to", "2.0", "--offline")
    assert "what the edit does on 1.0:\n" in text.out
    assert f"to start from, for edit 1; it changes nothing yet:\n\n{part['draft']}" in text.out
    assert "-        result = self.work(job, size)" in text.out
    assert "+        result = self.work(job, size, fast=True)" in text.out
    assert "a person must decide" in text.out
    said = " ".join(text.out.split())
    assert "- 1.0 from line 13, + 2.0 from line 13:" in said
    assert f"next: in {path}, write what edit 1 (line " in said
    assert 'a further one with `versions = ">=2.0"`' in said
    assert said.endswith("Then: `patchkit matrix fix`")
    assert "nothing was written" not in said
    text = porter.bench("port", "fix", "--to", "2.0", "--offline", "--write")
    assert "for the patch file; nothing was written" in text.out


def test_lines_that_stand_there_once_more_are_told_apart_only_by_their_neighbours(porter: Porter) -> None:
    body = '[[edit]]\nfile = "demo/core.py"\nscope = "Worker.run"\nfind = "size = len(job)"\nreplace = "size = 1"\n'
    porter.patch(body)
    line = "        size = len(job)\n"
    again = f"        self.check(job)\n{line}        result = None\n{line}        result"
    porter.release(
        "2.0", {"demo/core.py": OLD.replace("        self.check(job)\n        size = len(job)\n        result", again)}
    )
    run = porter()
    assert (run.status, run.json["state"]) == (1, "decide")
    assert run.json["parts"][0]["code"] == "anchor-count"


def test_an_anchor_that_matches_other_code_than_before_is_doubted(porter: Porter) -> None:
    """The line went from one method, and another one has one like it: the match is unique, and wrong."""
    body = '[[edit]]\nfile = "demo/core.py"\nfind = "        self.done = 0\\n"\nreplace = "        self.done = 1\\n"\n'
    porter.patch(body)
    new = OLD.replace("        self.done = 0\n", "").replace("        self.check(job)\n", "        self.done = 0\n")
    porter.release("2.0", {"demo/core.py": new})
    run = porter()
    (part,) = run.json["parts"]
    assert (run.status, part["state"], part["code"]) == (1, "decide", "doubtful")
    assert "demo/core.py:12" in part["reason"]


def test_text_that_uses_a_name_that_is_gone_is_doubted(porter: Porter) -> None:
    porter.patch(EDIT.replace("size + 1", "size + len(os.sep)"))
    old = OLD.replace("self.check(job)", "self.check(job, os.sep)")
    porter.release("1.0", {"demo/core.py": old})
    # Context lines are as they were; what the replacement names is not in the release any more.
    porter.release("2.0", {"demo/core.py": old.replace("import os\n", "").replace("os.sep", "'/'")})
    run = porter()
    assert (run.status, run.json["parts"][0]["code"]) == (1, "doubtful")
    assert run.json["parts"][0]["reason"] == "its text uses os, sep, which demo 2.0 has nowhere"
    porter.release(
        "2.0", {"demo/core.py": old.replace("import os\n", "").replace("os.sep", "'/'"), "demo/b.py": "os.sep\n"}
    )
    run = porter()
    assert run.status == 0
    assert run.json["parts"][0]["cautions"] == ["its text uses os, sep, which this file does not have any more"]


def test_a_name_that_is_gone_counts_in_an_f_string_as_well(porter: Porter) -> None:
    porter.patch(EDIT.replace("size + 1", "f'{os.sep}'"))
    old = OLD.replace("self.check(job)", "self.check(job, os.sep)")
    porter.release("1.0", {"demo/core.py": old})
    porter.release("2.0", {"demo/core.py": old.replace("import os\n", "").replace("os.sep", "'/'")})
    run = porter()
    assert (run.status, run.json["parts"][0]["code"]) == (1, "doubtful")
    porter.patch(EDIT.replace("size + 1", "'os.sep'"))
    assert porter().status == 0


def test_a_syntax_edit_stays_one_in_a_method_with_another_name(porter: Porter) -> None:
    porter.patch(
        '[[edit]]\nfile = "demo/core.py"\nscope = "Worker.run"\n'
        'match = "self.work($A, $B)"\nreplace = "self.work($B, $A)"\n'
    )
    new = OLD.replace("def run(self, job)", "def execute(self, job)")
    porter.release("2.0", {"demo/core.py": new})
    run = porter("--write")
    assert run.json["parts"][0]["variant"]["match"] == "self.work($A, $B)"
    assert porter.result("2.0", {"demo/core.py": new}) == new.replace("(job, size)", "(size, job)")


def test_an_insertion_keeps_to_the_line_it_was_tied_to(porter: Porter) -> None:
    body = (
        '[[edit]]\nfile = "demo/core.py"\nscope = "Worker.run"\n'
        "find = '''\n        self.check(job)\n        size = len(job)\n        result = self.work(job, size)\n'''\n"
        "insert_after = '''\n        self.note(result)\n'''\n"
    )
    porter.patch(body)
    new = OLD.replace("        self.check(job)\n", "        self.verify(job)\n")
    new = new.replace("        self.done += 1\n", "        self.count(1)\n")
    porter.release("2.0", {"demo/core.py": new})
    run = porter("--write")
    assert run.status == 0, run.out
    assert run.json["parts"][0]["variant"]["action"] == "insert_after"
    line = "        result = self.work(job, size)\n"
    assert porter.result("2.0", {"demo/core.py": new}) == new.replace(line, line + "        self.note(result)\n")


def test_what_the_release_has_itself_is_not_ported(porter: Porter) -> None:
    porter.patch(EDIT + '[[upstreamed]]\nfile = "demo/core.py"\nfind = "size + 1"\n')
    porter.release("2.0", {"demo/core.py": OLD.replace("size)", "size + 1)")})
    run = porter()
    assert (run.status, run.json["state"]) == (0, "upstreamed")


def test_a_postcondition_that_does_not_hold_there_is_left_to_a_person(porter: Porter) -> None:
    porter.patch(EDIT + '[[postcondition]]\nfile = "demo/core.py"\nfind = "size + 1"\ncount = 1\n')
    porter.release("2.0", {"demo/core.py": OLD + "\n\nX = 'size + 1'\n"})
    run = porter()
    assert (run.status, run.json["state"]) == (1, "decide")
    assert run.json["problem"].startswith("postcondition 1: ")


def test_an_edit_for_other_versions_is_widened_where_it_fits(porter: Porter) -> None:
    path = porter.patch(EDIT.replace("find    =", 'versions = "<1.5"\nfind    =', 1), requirement="demo")
    porter.release("2.0", {"demo/core.py": OLD})
    assert porter("--write").status == 0
    assert load_patch(str(path)).edits[0].versions == "<2.1"


def test_a_release_that_does_not_fit_is_no_base(porter: Porter) -> None:
    porter.patch(requirement="demo>=0.9")
    porter.release("0.9", {"demo/core.py": "x = 1\n"})
    porter.release("2.0", {"demo/core.py": OLD})
    run = porter("--from", "0.9")
    assert (run.status, run.error["code"]) == (4, "scope-missing")
    porter.bench.patch("fix", EDIT, requirement="demo==0.9")
    run = porter()
    assert (run.status, run.error["code"]) == (5, "no-base")


def test_an_older_release_is_ported_to_as_well(porter: Porter) -> None:
    path = porter.patch(requirement="demo>=1.0")
    new = OLD.replace("        self.done += 1\n", "        self.count(1)\n")
    porter.release("0.5", {"demo/core.py": new})
    assert porter("--write", to="0.5").status == 0
    patch = load_patch(str(path))
    assert (patch.target.requirement, [e.versions for e in patch.edits]) == ("demo>=0.5", [">0.5", "<=0.5"])
    assert porter.result("0.5", {"demo/core.py": new}) == new.replace("size)", "size + 1)")


def test_a_local_version_is_told_by_its_public_part_or_by_name(porter: Porter) -> None:
    """No file may hold `>=2.0+cpu`."""
    moved = OLD.replace("        self.done += 1\n", "        self.count(1)\n")
    path = porter.patch()
    porter.release("2.0+cpu", {"demo/core.py": moved})
    run = porter("--write", to="2.0+cpu")
    assert (run.status, run.json["state"]) == (0, "ported"), run.err
    assert [edit.versions for edit in load_patch(str(path)).edits] == ["<2.0", ">=2.0"]
    assert porter.result("2.0+cpu", {"demo/core.py": moved}) == moved.replace("size)", "size + 1)")
    # A build of the very release that it is for.
    path = porter.patch(requirement="demo==1.0")
    porter.release("1.0+cpu", {"demo/core.py": moved})
    run = porter("--write", "--from", "1.0", to="1.0+cpu")
    assert (run.status, run.json["state"]) == (0, "ported"), run.err
    assert [edit.versions for edit in load_patch(str(path)).edits] == ["!=1.0+cpu", "==1.0+cpu"]
    for version, text in {"1.0": OLD, "1.0+cpu": moved}.items():
        assert porter.result(version, {"demo/core.py": text}) == text.replace("size)", "size + 1)")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_the_patch_file_keeps_its_form(porter: Porter, newline: str, bom: bytes) -> None:
    path = porter.patch("# first\n" + EDIT + "\n# last\n")
    path.write_bytes(bom + path.read_bytes().replace(b"\n", newline.encode()))
    path.chmod(0o640)
    before = path.read_bytes()
    porter.release("2.0", {"demo/core.py": OLD.replace("        self.done += 1\n", "        self.count(1)\n")})
    assert porter("--write").status == 0
    after = path.read_bytes()
    assert after.startswith(bom + b"schema = 1" + newline.encode())
    assert after.count(b"\n") == after.count(newline.encode())
    assert after.endswith(b"# last" + newline.encode())
    assert before.partition(b"# first")[0].replace(b"<2", b"<2.1") == after.partition(b"# first")[0]
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in path.parent.iterdir()] == ["fix.toml"]


def test_a_patch_that_is_shipped_is_not_written(
    porter: Porter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "shipped").mkdir()
    path = porter.patch().rename(tmp_path / "shipped" / "fix.toml")
    monkeypatch.setattr("patchkit.ops.catalog.shipped_folder", lambda: str(path.parent))
    porter.release("2.0", {"demo/core.py": OLD})
    assert porter().status == 0
    run = porter("--write")
    assert (run.status, run.error["code"]) == (2, "usage")
    assert "cp " in run.error["hint"]


def test_a_value_that_is_not_on_its_own_line_is_not_touched() -> None:
    text = PatchText(b'[target]\nrequirement = """\ndemo"""\n')
    with pytest.raises(PatchFileError, match="not a string on its own line"):
        text.set_string(("target", "requirement"), "demo>=1")
    with pytest.raises(PatchFileError, match="header"):
        PatchText(b'edit = [{file = "a"}]\n').insert_behind("edit", 1, "[[edit]]\n")


# --- alignment


def test_a_run_is_carried_only_where_it_can_be_no_other() -> None:
    old = ["a()\n", "x = 1\n", "b()\n", "x = 1\n", "c()\n"]
    same = Alignment(old, ["new()\n", *old]).run(3, 4)
    assert not isinstance(same, str)
    assert (same.first, same.why) == (4, "the same lines, number 2 of 2 before and now")
    assert isinstance(Alignment(old, ["x = 1\n"]).run(1, 2), str), "the only one left, with no neighbour to tell which"
    assert isinstance(Alignment(old, ["a()\n", "x = 2\n", "b()\n", "x = 1\n", "c()\n"]).run(1, 2), str)


def test_an_anchor_that_stands_there_in_another_layout_is_named_as_such(porter: Porter) -> None:
    find = "ALL = ('one', 'two', 'three')"
    porter.release("1.0", {"demo/core.py": f"{find}\nALL = ALL\n"})
    porter.patch(f'[[edit]]\nfile = "demo/core.py"\nfind = "{find}\\n"\nreplace = "ALL = ()\\n"\n')
    laid = 'ALL = (\n    "one",\n    "two",\n    "three",\n)\n'
    porter.release("2.0", {"demo/core.py": f"x = 1\n{laid}y = 2\n{laid}"})
    run = porter()
    assert (run.status, run.json["state"]) == (1, "decide")
    where = "the same code, laid out otherwise: line {} of demo/core.py in 2.0"
    assert run.json["parts"][0]["candidates"] == [where.format(2), where.format(8)]


def test_where_new_edits_begin_is_said_only_where_there_are_some(porter: Porter) -> None:
    porter.patch()
    porter.release("2.0", {"demo/core.py": "# new\n" + OLD})
    words = ("port", "fix", "--to", "2.0", "--offline")
    assert "the new edits begin" not in porter.bench(*words).out
    porter.release("2.0", {"demo/core.py": OLD.replace("        self.done += 1\n", "        self.count(1)\n")})
    assert "the new edits begin" in porter.bench(*words).out


# --- what stands in a literal is no layout
