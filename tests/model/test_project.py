"""Finding the project's list."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.errors import PatchFileError
from patchkit.model.project import Project, load_project


def write(folder: Path, text: str | bytes) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pyproject.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def refusal(start: Path) -> PatchFileError:
    with pytest.raises(PatchFileError) as caught:
        load_project(str(start))
    return caught.value


def test_the_whole_table(tmp_path: Path) -> None:
    path = write(
        tmp_path, '[tool.patchkit]\npatches = ["p", "../shared/./q", "/abs"]\napply = ["one", "two"]\nrecipes = "r"\n'
    )
    (tmp_path / "a" / "b").mkdir(parents=True)
    expected = Project(
        path=path,
        root=str(tmp_path),
        patches=(str(tmp_path / "p"), str(tmp_path.parent / "shared" / "q"), "/abs"),
        wanted=("one", "two"),
        listed=True,
        recipes=(str(tmp_path / "r"),),
    )
    assert load_project(str(tmp_path)) == expected
    assert load_project(str(tmp_path / "a" / "b")) == expected
    assert load_project(str(tmp_path / "a" / "no" / "such")) == expected


def test_defaults(tmp_path: Path) -> None:
    path = write(tmp_path, "[tool.patchkit]\n")
    folders = {name: (str(tmp_path / name),) for name in ("patches", "recipes")}
    assert load_project(str(tmp_path)) == Project(path=path, root=str(tmp_path), **folders)


def test_one_folder_as_a_string(tmp_path: Path) -> None:
    write(tmp_path, '[tool]\npatchkit = {patches = "my/patches"}\n')
    project = load_project(str(tmp_path))
    assert project is not None
    assert project.patches == (str(tmp_path / "my" / "patches"),)


def test_wanting_nothing_is_not_having_no_list(tmp_path: Path) -> None:
    write(tmp_path, "[tool.patchkit]\napply = []\n")
    project = load_project(str(tmp_path))
    assert project is not None
    assert project.wanted == ()
    assert project.listed


def test_relative_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "[tool.patchkit]\n")
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    project = load_project(".")
    assert project is not None
    assert project.root == str(tmp_path)


def test_files_without_the_table_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "[tool.patchkit]\n")
    write(tmp_path / "a", "[project]\nname = 'x'\n")
    write(tmp_path / "a" / "b", "[project]\nname = 'patchkit'\n[tool.patchkits]\n")
    write(tmp_path / "a" / "b" / "c", "tool = 3 # patchkit\n")
    project = load_project(str(tmp_path / "a" / "b" / "c"))
    assert project is not None
    assert project.root == str(tmp_path)


def test_the_nearest_table_wins(tmp_path: Path) -> None:
    write(tmp_path, "[tool.patchkit]\napply = ['outer']\n")
    write(tmp_path / "a", "[tool.patchkit]\n")
    project = load_project(str(tmp_path / "a"))
    assert project is not None
    assert project.wanted == ()


def test_no_project(tmp_path: Path) -> None:
    project = load_project(str(tmp_path))
    assert project is None or not project.path.startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[tool.patchkit]\npathces = 'x'\n", '2: tool.patchkit: unknown key "pathces" (did you mean "patches"?)'),
        ("[tool.patchkit]\nzzz = 'x'\n", '2: tool.patchkit: unknown key "zzz"'),
        (
            "[tool.patchkit]\npatches = 3\n",
            "2: tool.patchkit: patches: expected a string or an array of strings, found an integer",
        ),
        ("[tool.patchkit]\npatches = ''\n", "2: tool.patchkit: patches: must not be empty"),
        ("[tool.patchkit]\npatches = []\n", "2: tool.patchkit: patches: must not be empty"),
        (
            "[tool.patchkit]\npatches = ['a', 'a']\n",
            '2: tool.patchkit: patches: item 2: "a" is there already, as item 1',
        ),
        (
            "[tool.patchkit]\napply = 'one'\n",
            "2: tool.patchkit: apply: expected an array of strings, found a string",
        ),
        (
            "[tool.patchkit]\napply = [\n  'one',\n  'Two',\n]\n",
            '4: tool.patchkit: apply: item 2: "Two" is not made of lower-case letters, digits and hyphens, '
            'beginning with a letter or digit (did you mean "two"?)',
        ),
        ("[tool.patchkit]\napply = ['a', 'a']\n", '2: tool.patchkit: apply: item 2: "a" is there already, as item 1'),
        ("[tool]\npatchkit = 'x'\n", "2: tool.patchkit: expected a table [tool.patchkit], found a string"),
        ("[[tool.patchkit]]\n", "1: tool.patchkit: expected a table [tool.patchkit], found an array of tables"),
    ],
)
def test_problems(tmp_path: Path, text: str, expected: str) -> None:
    path = write(tmp_path, text)
    error = refusal(tmp_path)
    assert error.message == f"{path}:{expected}"
    assert error.details["line"] == int(expected.partition(":")[0])


def test_broken_toml_is_told_where_it_is_the_nearest_and_means_us(tmp_path: Path) -> None:
    path = write(tmp_path, "[tool.patchkit]\napply = [\n")
    assert refusal(tmp_path).message.startswith(f"{path}:2: not valid TOML: ")
    write(tmp_path, b"[tool.patchkit]\n# \xff\n")
    assert refusal(tmp_path).message == f"{path}:2: not UTF-8: byte 0xff at offset 18"


def test_broken_toml_of_others_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "[tool.patchkit]\napply = ['one']\n")
    write(tmp_path / "a", "patchkit = [\n")
    project = load_project(str(tmp_path / "a"))
    assert project is not None
    assert project.wanted == ("one",)


def test_broken_toml_further_up_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "[tool.patchkit]\napply = ['one']\n")
    write(tmp_path / "a", "[tool.patchkit\n")
    write(tmp_path / "a" / "b", "[project]\n")
    project = load_project(str(tmp_path / "a" / "b"))
    assert project is not None
    assert project.wanted == ("one",)


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "[tool.patchkit]\napply = ['one']\n")
    (tmp_path / "a" / "pyproject.toml").mkdir(parents=True)
    project = load_project(str(tmp_path / "a"))
    assert project is not None
    assert project.wanted == ("one",)


def test_other_projects_cost_no_parse(tmp_path: Path) -> None:
    write(tmp_path, "[project]\nname = 'x'\n")
    code = (
        "import sys\nfrom patchkit.model.project import load_project\n"
        f"load_project({str(tmp_path)!r})\n"
        "print([m for m in ('tomllib', 'dataclasses', 'packaging', 'pathlib', 'difflib') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "[]\n"
