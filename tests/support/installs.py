"""Installs of every kind, made by hand, each with what patchkit shall do with it.

``docs/installs.md`` lists the same kinds with the same outcomes: ``tests/site/test_installers.py`` runs each of them
through apply, check and revert, and compares the list with the page. Those on released packages are in
``tests/real/installs/released.toml``.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from support.dists import make_dist, make_egg_info, record_bytes, record_hash

CORE = "VALUE = 1\n"
FILES: dict[str, str | bytes] = {"demo/__init__.py": "", "demo/core.py": CORE}
TEXTS = {"demo/__init__.py": "", "demo/core.py": CORE}

#: Outcomes, as the page words them.
WORKS = "works"
NO_WITNESS = "works, no witness"


class Made(NamedTuple):
    """One kind of install.

    Attributes:
        name: As the page has it.
        outcome: ``works``, ``works, no witness``, or ``refused: CODE (STATUS)``.
        build: Makes it in a site-packages directory.
        file: The file that the patch edits.
        requirement: The patch's own.
        target: Further lines of the patch's ``[target]``.
        says: What the refusal must say, message and hint together.
    """

    name: str
    outcome: str
    build: Callable[[Path], object]
    file: str = "demo/core.py"
    requirement: str = "demo"
    target: str = ""
    says: Sequence[str] = ()


KINDS: list[Made] = []


def kind(
    name: str,
    outcome: str = WORKS,
    *,
    file: str = "demo/core.py",
    requirement: str = "demo",
    target: str = "",
    says: Sequence[str] = (),
) -> Callable[[Callable[[Path], object]], None]:
    """Add a kind; what is decorated makes it."""

    def add(build: Callable[[Path], object]) -> None:
        KINDS.append(Made(name, outcome, build, file, requirement, target, says))

    return add


def rewrite(info: Path, change: Callable[[list[list[str]]], Sequence[Sequence[str]]]) -> None:
    """Change the rows of a RECORD."""
    rows = list(csv.reader(io.StringIO((info / "RECORD").read_text(encoding="utf-8"))))
    (info / "RECORD").write_bytes(record_bytes(change(rows)))


def respelled(spell: Callable[[Path, str], str]) -> Callable[[Path], object]:
    """A RECORD whose paths are spelled in another way."""

    def build(site: Path) -> None:
        info = make_dist(site, "demo", "1.0", FILES)
        rewrite(info, lambda rows: [(spell(site, row[0]), *row[1:]) for row in rows])

    return build


def hashed(field: Callable[[str], str]) -> Callable[[Path], object]:
    """A RECORD whose hash fields are changed."""

    def build(site: Path) -> None:
        info = make_dist(site, "demo", "1.0", FILES)
        rewrite(info, lambda rows: [(row[0], field(row[1]) if "core" in row[0] else row[1], *row[2:]) for row in rows])

    return build


def with_rows(*rows: Sequence[str]) -> Callable[[Path], object]:
    """A RECORD with further rows."""
    return lambda site: make_dist(site, "demo", "1.0", FILES, extra_rows=rows)


def replaced(data: bytes) -> Callable[[Path], object]:
    """A RECORD of these bytes."""
    return lambda site: (make_dist(site, "demo", "1.0", FILES) / "RECORD").write_bytes(data)


def versioned(version: str) -> Callable[[Path], object]:
    """A release of that version."""
    return lambda site: make_dist(site, "demo", version, FILES)


# --- RECORD: its form

kind("RECORD with `\\n` (uv)")(lambda site: make_dist(site, "demo", "1.0", FILES))
kind("RECORD with `\\r\\n` (pip)")(lambda site: make_dist(site, "demo", "1.0", FILES, newline="\r\n"))
kind("every field in quotes")(
    lambda site: (make_dist(site, "demo", "1.0", FILES) / "RECORD").write_text(
        f'"demo/core.py","{record_hash(CORE.encode())}","10"\n"demo/__init__.py","",""\n'
    )
)
kind("a comma in a name", file="demo/a,b.py")(
    lambda site: make_dist(site, "demo", "1.0", {**FILES, "demo/a,b.py": CORE})
)
kind("a quote in a name", file='demo/say "hi".py')(
    lambda site: make_dist(site, "demo", "1.0", {**FILES, 'demo/say "hi".py': CORE})
)
kind("non-ASCII names, in UTF-8", file="demo/naïve/日本.py")(
    lambda site: make_dist(site, "demo", "1.0", {**FILES, "demo/naïve/日本.py": CORE})
)


@kind(
    "non-ASCII names in another encoding", "refused: not-in-distribution (4)", file="demo/é.py", says=["is not UTF-8"]
)
def _(site: Path) -> None:
    info = make_dist(site, "demo", "1.0", {**FILES, "demo/é.py": CORE})
    (info / "RECORD").write_bytes((info / "RECORD").read_text(encoding="utf-8").encode("latin-1"))


kind("rows that begin with `./`, or with doubled `/`")(respelled(lambda site, path: "./" + path.replace("/", "//")))
kind("absolute rows that lead into the site")(respelled(lambda site, path: (site / path).as_posix()))
kind("`../` rows that lead back into the site")(respelled(lambda site, path: f"../{site.name}/{path}"))
kind("backslashes as separators")(respelled(lambda site, path: path.replace("/", "\\")))
kind("`../` and absolute rows that lead out, beside")(
    with_rows(("../../../bin/demo.py", "", ""), ("/etc/demo.py", "", ""))
)
kind(
    "the file of a `../` row as the target of an edit",
    "refused: patch-file (2)",
    file="../../../bin/demo.py",
    says=["leads out of the distribution"],
)(with_rows(("../../../bin/demo.py", "", "")))
kind("rows that differ by case")(lambda site: make_dist(site, "demo", "1.0", {**FILES, "demo/Core.py": "OTHER = 1\n"}))
kind(
    "a row in another case than the file and the patch",
    "refused: not-in-distribution (4)",
    says=["nearest: demo/Core.py"],
)(respelled(lambda site, path: path.replace("core", "Core")))
kind("`RECORD.jws` and `RECORD.p7s`")(
    with_rows(("demo-1.0.dist-info/RECORD.jws", "", ""), ("demo-1.0.dist-info/RECORD.p7s", "", ""))
)
kind("RECORD empty", "refused: record (5)", says=["is empty", "demo==1.0"])(replaced(b""))
kind("RECORD no text (UTF-16, say)", "refused: record (5)", says=["is no text", "demo==1.0"])(
    replaced("demo/core.py,,\n".encode("utf-16"))
)
kind(
    "RECORD without the file's row", "refused: not-in-distribution (4)", says=["it exists, but RECORD does not list it"]
)(replaced(b"demo/__init__.py,,\ndemo-1.0.dist-info/RECORD,,\n"))
kind("RECORD cut within the file's row", "refused: record (5)", says=["has a damaged sha256 hash", "--fetch"])(
    replaced(b"demo/__init__.py,,\ndemo/core.py,sha256=abc")
)


@kind("RECORD a directory", "refused: record (5)", says=["cannot be read: Is a directory", "rm -r ", "demo==1.0"])
def _(site: Path) -> None:
    (make_dist(site, "demo", "1.0", FILES, record=False) / "RECORD").mkdir()


@kind("RECORD that cannot be read", "refused: record (5)", says=["cannot be read", "demo==1.0"])
def _(site: Path) -> None:
    (make_dist(site, "demo", "1.0", FILES, record=False) / "RECORD").symlink_to("RECORD")  # also for root


# --- RECORD: its hashes

for one in ("sha512", "sha384"):
    kind(one)(hashed(lambda text, one=one: record_hash(CORE.encode(), one)))
for one in ("md5", "sha1"):
    kind(one, NO_WITNESS)(hashed(lambda text, one=one: record_hash(CORE.encode(), one)))
kind("an unknown algorithm", NO_WITNESS)(hashed(lambda text: text.replace("sha256", "whirlpool")))
kind("no hash", NO_WITNESS)(hashed(lambda text: ""))
kind("another hash than that of the file", "refused: modified (5)", says=["differ from RECORD's hash", "--fetch"])(
    hashed(lambda text: record_hash(b"other"))
)
kind("two rows, the same hash")(with_rows(("demo/core.py", record_hash(CORE.encode()), "10")))
kind("two rows, different hashes", "refused: record (5)", says=["lists it more than once", "--fetch"])(
    with_rows(("demo/core.py", record_hash(b"other"), "5"))
)
kind("two rows, spelled differently, with different hashes", "refused: record (5)", says=["lists it more than once"])(
    with_rows(("./demo/core.py", record_hash(b"other"), "5"))
)
kind("rows for files that are not there, beside")(with_rows(("demo/ghost.py", record_hash(b""), "0")))
kind(
    "the file of such a row", "refused: missing (5)", file="demo/ghost.py", says=["listed by RECORD but is not there"]
)(with_rows(("demo/ghost.py", record_hash(b""), "0")))

# --- no RECORD

kind("no RECORD (conda, Debian), with `top_level.txt`", NO_WITNESS)(
    lambda site: make_dist(site, "demo", "1.0", FILES, record=False, info_files={"top_level.txt": "demo\n"})
)
kind("no RECORD and no list at all: the directory of the name", NO_WITNESS)(
    lambda site: make_dist(site, "demo", "1.0", FILES, record=False, installer="conda")
)
kind("an `.egg-info` directory with `installed-files.txt`", NO_WITNESS)(
    lambda site: make_egg_info(site, "demo", "1.0", TEXTS, lists={"installed-files.txt": "../demo/core.py\n"})
)
kind("an `.egg-info` directory with `top_level.txt`", NO_WITNESS)(
    lambda site: make_egg_info(site, "demo", "1.0", TEXTS, lists={"top_level.txt": "demo\n"})
)
kind("an `.egg-info` file (distutils)", NO_WITNESS)(
    lambda site: make_egg_info(site, "demo", "1.0", TEXTS, directory=False)
)


def _egg(site: Path, version: str) -> None:
    make_egg_info(site / f"demo-{version}-py3.11.egg", "demo", version, TEXTS, egg_info="EGG-INFO")


@kind("an unpacked `.egg` that `easy-install.pth` names", NO_WITNESS, file="demo/core.py")
def _(site: Path) -> None:
    _egg(site, "1.0")
    (site / "easy-install.pth").write_text("./demo-1.0-py3.11.egg\n")


@kind("two `.egg` of which `easy-install.pth` names one", NO_WITNESS, requirement="demo==1.0")
def _(site: Path) -> None:
    _egg(site, "0.9")
    _egg(site, "1.0")
    (site / "easy-install.pth").write_text("./demo-1.0-py3.11.egg\n")


@kind("a zipped `.egg`", "refused: zipped (3)", says=["is one file", "install it as files", "demo==1.0"])
def _(site: Path) -> None:
    site.mkdir(parents=True)
    with zipfile.ZipFile(site / "demo-1.0-py3.11.egg", "w") as archive:
        archive.writestr("EGG-INFO/PKG-INFO", "Metadata-Version: 1.1\nName: demo\nVersion: 1.0\n")
        archive.writestr("demo/core.py", CORE)
    (site / "easy-install.pth").write_text("./demo-1.0-py3.11.egg\n")


# --- INSTALLER

kind("no INSTALLER")(lambda site: (make_dist(site, "demo", "1.0", FILES) / "INSTALLER").unlink())
for one in ("conda", "uv", "rpm", "poetry 1.8.3"):
    kind(f"INSTALLER `{one}`")(lambda site, one=one: make_dist(site, "demo", "1.0", FILES, installer=one))

# --- METADATA


@kind(
    "no METADATA", "refused: not-installed (3)", says=["has no METADATA", "interrupted install or removal", "demo==1.0"]
)
def _(site: Path) -> None:
    (make_dist(site, "demo", "1.0", FILES) / "METADATA").unlink()


def _metadata(data: bytes) -> Callable[[Path], object]:
    return lambda site: (make_dist(site, "demo", "1.0", FILES) / "METADATA").write_bytes(data)


kind("METADATA without Version: the directory's name tells", requirement="demo==1.0")(_metadata(b"Name: demo\n"))
kind("METADATA in Latin-1", requirement="demo==1.0")(
    _metadata("Name: demo\nAuthor: José\nVersion: 1.0\n".encode("latin-1"))
)
kind("METADATA in UTF-16: the directory's name tells", requirement="demo==1.0")(
    _metadata("Name: demo\nVersion: 1.0\n".encode("utf-16"))
)
kind("`PyYAML-1.0.dist-info`, required as `pyyaml`", requirement="pyyaml")(
    lambda site: make_dist(site, "PyYAML", "1.0", FILES)
)
kind("`ruamel.yaml-1.0.dist-info`, required as `Ruamel_Yaml`", requirement="Ruamel_Yaml")(
    lambda site: make_dist(site, "ruamel.yaml", "1.0", FILES)
)
kind("`Flask-Login-1.0.dist-info` (a dash that should be `_`)", requirement="flask.login")(
    lambda site: make_dist(site, "Flask-Login", "1.0", FILES, dist_info="Flask-Login-1.0.dist-info")
)
kind(
    "a directory's name that METADATA does not bear out",
    "refused: not-installed (3)",
    says=["other-1.0.dist-info says that it is demo", "rm -r "],
)(lambda site: make_dist(site, "demo", "1.0", FILES, dist_info="other-1.0.dist-info"))
kind("another version in METADATA than in the directory's name: METADATA counts", requirement="demo==1.0")(
    lambda site: make_dist(site, "demo", "1.0", FILES, dist_info="demo-9.9.dist-info")
)


@kind("an empty `.dist-info` left of a removal, beside")
def _(site: Path) -> None:
    make_dist(site, "demo", "1.0", FILES)
    (site / "demo-0.9.dist-info").mkdir()


@kind(
    "two `.dist-info` of one distribution",
    "refused: duplicate (5)",
    says=["demo-0.9.dist-info and demo-1.0.dist-info", "the files are those of 1.0", "rm -r "],
)
def _(site: Path) -> None:
    make_dist(site, "demo", "0.9", {**FILES, "demo/core.py": "VALUE = 0\n"})
    make_dist(site, "demo", "1.0", FILES)


kind("an `.egg-info` beside the `.dist-info` of the same release")(
    lambda site: (make_dist(site, "demo", "1.0", FILES), make_egg_info(site, "demo", "1.0", {}))
)

# --- files of several, namespaces


@kind("a file that another distribution installs as well, with the same bytes")
def _(site: Path) -> None:
    make_dist(site, "demo", "1.0", FILES)
    make_dist(site, "other", "2.0", {"demo/core.py": CORE})


@kind(
    "such a file with the other's bytes",
    "refused: modified (5)",
    says=["its bytes are those of other", "make other the target"],
)
def _(site: Path) -> None:
    make_dist(site, "demo", "1.0", FILES)
    make_dist(site, "other", "2.0", {"demo/core.py": "VALUE = 1  # other\n"})


@kind("a distribution inside of another's package", requirement="demo-inner", file="demo/inner/core.py")
def _(site: Path) -> None:
    make_dist(site, "demo", "1.0", FILES)
    make_dist(site, "demo-inner", "2.0", {"demo/inner/core.py": CORE})


kind("a namespace package of PEP 420", file="demo/part/core.py")(
    lambda site: make_dist(site, "demo", "1.0", {"demo/part/core.py": CORE})
)

# --- versions, each with a guard on it

for version, requirement in {
    "1!1.2.6": "demo==1!1.2.6",
    "1.0+cpu": "demo==1.0",
    "2.9.0.post0": "demo>=2.9,<2.10",
    "0.13.2.post6": "demo>0.13.2.post5",
    "1.0.dev3": "demo>=1.0.dev1",
    "1.0rc1": "demo<1.1",
    "1.0.0-1": "demo==1.0.0.post1",
}.items():
    requires = f'requires = ["demo{requirement.removeprefix("demo")}"]'
    kind(f"version `{version}`, required as `{requirement}`", requirement=requirement, target=requires)(
        versioned(version)
    )
for version, requirement in {
    "1!1.2.6": "demo<2",
    "1.0+cpu": "demo==1.0+cu12",
    "0.13.2.post6": "demo==0.13.2",
    "1.0.dev3": "demo>=1.0",
    "1.0rc1": "demo>=1.0",
}.items():
    kind(f"version `{version}`, required as `{requirement}`", "refused: version (3)", requirement=requirement)(
        versioned(version)
    )
for version in ("2004d", "1.0-custom"):
    kind(f"version `{version}`, which is none of PEP 440", "refused: version (3)", says=["is no PEP 440 version"])(
        versioned(version)
    )


@kind("a prerelease that `requires` names", target='requires = ["jax>=0.11.0.dev1", "torch==2.3"]')
def _(site: Path) -> None:
    make_dist(site, "demo", "1.0", FILES)
    make_dist(site, "jax", "0.11.0.dev20260101", {"jax/a.py": ""})
    make_dist(site, "torch", "2.3.0+cpu", {"torch/a.py": ""})


kind("a marker that holds", requirement="demo; python_version > '3'")(versioned("1.0"))
kind("a marker that does not", "refused: marker (3)", requirement="demo; sys_platform == 'nowhere'")(versioned("1.0"))
kind("extras in the requirement", "refused: patch-file (2)", requirement="demo[fast]", says=["extras such as [fast]"])(
    versioned("1.0")
)

# --- editable


def _source(site: Path) -> Path:
    source = site.parent / "source"
    (source / "demo").mkdir(parents=True)
    (source / "demo" / "core.py").write_text(CORE)
    return source


EDITABLE = "refused: editable (3)"


@kind("`direct_url.json` says editable (PEP 610, 660)", EDITABLE, says=["source", "edit it there"])
def _(site: Path) -> None:
    direct = {"url": _source(site).as_uri(), "dir_info": {"editable": True}}
    make_dist(site, "demo", "1.0", {}, info_files={"direct_url.json": json.dumps(direct)})


@kind("`.egg-link` (`setup.py develop`)", EDITABLE, says=[".egg-link leads to its source"])
def _(site: Path) -> None:
    source = _source(site)
    make_egg_info(source, "demo", "1.0", {}, egg_info="demo.egg-info")
    site.mkdir(parents=True)
    (site / "demo.egg-link").write_text(f"{source}\n.")
    (site / "easy-install.pth").write_text(f"{source}\n")


@kind("a `.pth` file that leads to the source, without `direct_url.json`", EDITABLE, says=["_demo.pth leads"])
def _(site: Path) -> None:
    make_dist(site, "demo", "1.0", {"_demo.pth": f"{_source(site)}\n"})


@kind("a finder of setuptools, without `direct_url.json`", EDITABLE, says=["redirects its imports"])
def _(site: Path) -> None:
    finder = f"MAPPING: dict[str, str] = {{'demo': {str(_source(site) / 'demo')!r}}}\n"
    pth = "import __editable___demo_1_0_finder; __editable___demo_1_0_finder.install()\n"
    make_dist(site, "demo", "1.0", {"__editable___demo_1_0_finder.py": finder, "__editable__.demo-1.0.pth": pth})


@kind("an import hook of `editables`, without `direct_url.json`", EDITABLE, says=["imports _editable_impl_demo"])
def _(site: Path) -> None:
    make_dist(
        site, "demo", "1.0", {"_editable_impl_demo.py": "", "_editable_impl_demo.pth": "import _editable_impl_demo"}
    )
