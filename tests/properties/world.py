"""A site with one distribution, patches for it, and what every file must hold, worked out without patchkit.

Files are lists of lines. Every patch has lines of its own (*cells*) and a rule for what becomes of them, so what a file
must hold is told by which patches are on, by nothing else; only the text of a probe is taken from a plan of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from support.dists import make_dist, record_hash

CORE, UTIL, NOTES = "demo/core.py", "demo/util.py", "demo/notes.cfg"
FILES = (CORE, UTIL, NOTES)
#: (Python's name of the encoding, the cookie's line, a word that is not ASCII)
CODECS = {
    "utf-8": ("", "é中"),
    "utf-8-sig": ("", "é中"),
    "latin-1": ("# -*- coding: latin-1 -*-", "é"),
    "cp1252": ("# vim: set fileencoding=cp1252 :", "€"),
    "iso-8859-5": ("# coding=iso-8859-5", "Ж"),
    "shift_jis": ("# -*- coding: shift_jis -*-", "表ソ"),  # the second bytes of both are a backslash
    "gb18030": ("# coding: gb18030", "中€"),
    "koi8-r": ("# coding: koi8-r", "Ж"),
    "iso2022_jp": ("# coding: iso2022_jp", "変数"),
}
NEWLINES = ("\n", "\r\n", "\r", "mixed")
KINDS = ("text", "syntax", "wrap", "delete", "before", "after", "versions", "twice")
WORDS = ("one", "two", "three")
MTIME = 1_600_000_000_123_456_789


class Line(NamedTuple):
    """A line with its break; ``cell`` names whose it is."""

    text: str
    ending: str
    cell: str = ""


class Shape(NamedTuple):
    """How a file is written."""

    codec: str = "utf-8"
    newline: str = "\n"
    final: bool = True


class Rule(NamedTuple):
    """One edit of a patch: its table in the patch file, and what it makes of the cell's lines."""

    kind: str
    cell: int
    files: tuple[str, ...]


class Spec(NamedTuple):
    """A patch."""

    name: str
    rules: tuple[Rule, ...]
    imports: bool = False
    add: bool = False
    probe: bool = False
    notes: bool = False
    on_top: bool = False
    take: bool = False

    @property
    def files(self) -> set[str]:
        """The files that it edits."""
        found = {file for rule in self.rules for file in rule.files}
        found |= {CORE} if self.imports or self.on_top else set()
        found |= {UTIL} if self.probe else set()
        return found | ({NOTES} if self.notes else set())


def lines_of(path: str, shape: Shape, version: str, cells: int) -> list[Line]:
    """The file as the release has it."""
    if path == NOTES:
        texts = [("[notes]", ""), (f"version = {version}", ""), ("note = plain", "note"), ("bytes = \udcff\udcfe", "")]
    else:
        cookie, word = CODECS[shape.codec]
        texts = [(cookie, "")] if cookie else []
        texts += [('"""Doc."""', ""), ("import os", "import"), (f"VERSION = '{version}'", "")]
        for number in range(cells):
            texts += [(f"cell_{number} = {number}  # {word}", f"cell {number}"), (f"filler_{number} = '{word}'", "")]
        texts += [("def run():", ""), (f"    return '{word}'", "run"), ("", ""), ("last = 0", "")]
    kinds = ["\n", "\r\n"] if shape.newline == "mixed" else [shape.newline]
    out = [Line(text, kinds[number % len(kinds)], cell) for number, (text, cell) in enumerate(texts)]
    return out if shape.final else [*out[:-1], out[-1]._replace(ending="")]


def toml_text(text: str) -> str:
    return (
        '"'
        + "".join(c if c.isascii() and c.isprintable() and c not in '\\"' else f"\\u{ord(c):04x}" for c in text)
        + '"'
    )


class World:
    """The site on the disk, the patch files, and the model."""

    def __init__(self, shapes: dict[str, Shape], specs: Sequence[Spec]) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="patchkit-world-"))
        self.home = self.root / "site"
        self.folder = self.root / "patches"
        self.folder.mkdir()
        self.shapes = shapes
        self.specs = {spec.name: spec for spec in specs}
        self.cells = 1 + max((rule.cell for spec in specs for rule in spec.rules), default=0)
        self.variants = dict.fromkeys(self.specs, 0)
        self.version = "1.0"
        #: What the ledger must hold: name to variant, in the order of the stack.
        self.on: dict[str, int] = {}
        #: Those of them that a reinstall has taken out of the files since.
        self.lost: set[str] = set()
        #: Lines that somebody edited, by file: number to text.
        self.hand: dict[str, dict[str, str]] = {file: {} for file in FILES}
        self.probe_lines: tuple[list[str], list[str]] = ([], [])
        self.install("1.0")
        for name in self.specs:
            self.write_patch(name)

    def close(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    # -- the disk --------------------------------------------------------------------------------------------------

    def pristine(self, version: str) -> dict[str, bytes]:
        out = {"demo/__init__.py": b""}
        for path in FILES:
            out[path] = self.encode(path, lines_of(path, self.shapes[path], version, self.cells))
        return out | {self.spare(name): f"# {version}, for {name}\n".encode() for name in self.specs}

    @staticmethod
    def spare(name: str) -> str:
        """A file of the release that nobody changes, and that the patch may take away."""
        return f"demo/spare_{name}.py"

    def encode(self, path: str, lines: Sequence[Line]) -> bytes:
        text = "".join(line.text + line.ending for line in lines)
        if path == NOTES:
            return text.encode("utf-8", "surrogateescape")
        return text.encode(self.shapes[path].codec)

    def install(self, version: str) -> None:
        """As pip does: the release's files anew; what nobody installed stays."""
        for info in self.home.glob("demo-*.dist-info"):
            shutil.rmtree(info)
        for path in self.pristine(version):
            with contextlib.suppress(FileNotFoundError):
                (self.home / path).unlink()
        make_dist(self.home, "demo", version, self.pristine(version))
        os.chmod(self.home / CORE, 0o640)
        for number, path in enumerate(FILES):
            os.utime(self.home / path, ns=(MTIME + number, MTIME + number))
        for name in self.specs:
            os.utime(self.home / self.spare(name), ns=(MTIME, MTIME))
            os.chmod(self.home / self.spare(name), 0o604)
        self.version = version
        self.lost = {name for name in self.on if self.specs[name].files or self.specs[name].take}
        self.hand = {file: {} for file in FILES}

    def edit_by_hand(self, path: str, number: int, text: str) -> None:
        """Change a line that is no patch's; the file is written anew, as editors do."""
        shape = self.shapes[path]
        self.hand[path][f"filler_{number}" if path != NOTES else "version"] = text
        target = self.home / path
        data = self.expected()[path]
        assert shape
        target.unlink()
        target.write_bytes(data)
        if path == CORE:
            os.chmod(target, 0o640)

    def write_patch(self, name: str) -> Path:
        path = self.folder / f"{name}.toml"
        path.write_text(self.document(self.specs[name], self.variants[name]), encoding="utf-8")
        return path

    def document(self, spec: Spec, variant: int) -> str:
        word = WORDS[variant]
        after = '\nafter = ["p0"]' if spec.on_top else ""
        out = [
            f'schema = 1\nname = "{spec.name}"\nsummary = "the patch {spec.name}"',
            f'[target]\nrequirement = "demo"{after}',
        ]
        if spec.probe:
            out.append(f'[[edit]]\nfile = "{UTIL}"\nscope = "run"\nprobe = "it ran"')
        for rule in spec.rules:
            out += self.tables(rule, word)
        if spec.imports:
            out.append(f'[[edit]]\nfile = "{CORE}"\nadd_import = ["import {spec.name}_{word}"]')
        if spec.notes:
            out.append(f'[[edit]]\nfile = "{NOTES}"\nfind = "plain"\nreplace = "{word}"')
        if spec.on_top:
            out.append(f'[[edit]]\nfile = "{CORE}"\nfind = "extra_0 = 0"\nreplace = "extra_0 = \'{word}\'"')
        if spec.add:
            out.append(f'[[add]]\nfile = "demo/{spec.name}_new.py"\ncontent = "new = \'{word}\'\\r\\n"')
        if spec.take:
            out.append(f'[[remove]]\nfile = "{self.spare(spec.name)}"')
        return "\n".join(out) + "\n"

    def tables(self, rule: Rule, word: str) -> list[str]:
        number = rule.cell
        file = "[" + ", ".join(f'"{one}"' for one in rule.files) + "]"
        comment = {CODECS[self.shapes[one].codec][1] for one in rule.files}.pop()
        head = f"[[edit]]\nfile = {file}\n"
        old = f"cell_{number} = {number}"
        line = toml_text(f"{old}  # {comment}\n")
        match rule.kind:
            case "text":
                new = f"cell_{number} = '{word}'\nextra_{number} = 0"
                return [f"{head}find = {toml_text(old)}\nreplace = {toml_text(new)}"]
            case "syntax":
                return [f'{head}match = "cell_{number} = $X"\nreplace = "cell_{number} = wrapped($X, \'{word}\')"']
            case "wrap":
                return [f'{head}match = "cell_{number} = $X"\nwrap = "if {word}:\\n    $$$BODY"']
            case "delete":
                return [f"{head}find = {line}\ndelete = true"]
            case "before":
                return [f"{head}find = {line}\ninsert_before = \"above_{number} = '{word}'\\n\""]
            case "after":
                return [f'{head}match = "cell_{number} = {number}"\ninsert_after = "below_{number} = \'{word}\'"']
            case "versions":
                head += f"find = {toml_text(old)}\n"
                return [
                    f"{head}versions = '{versions}'\nreplace = \"cell_{number} = '{word} {versions}'\""
                    for versions in ("<2", ">=2")
                ]
            case "twice":  # two edits of one line
                return [
                    f'{head}find = "cell_{number} ="\nreplace = "cell_{number} = {word} ="',
                    f"{head}find = {line}\ninsert_after = \"twice_{number} = '{word}'\\n\"",
                ]
        raise AssertionError(rule.kind)

    # -- the model -------------------------------------------------------------------------------------------------

    def expected(self) -> dict[str, bytes]:
        """What every file of the site must hold now."""
        on = {name: variant for name, variant in self.on.items() if name not in self.lost}
        out = self.pristine(self.version)
        for path in FILES:
            out[path] = self.encode(path, self.lines(path, on))
        for name in on:
            if self.specs[name].take:
                del out[self.spare(name)]
        for name in self.on:
            if self.specs[name].add:
                out[f"demo/{name}_new.py"] = f"new = '{WORDS[self.on[name]]}'\r\n".encode()
        return out

    def lines(self, path: str, on: dict[str, int]) -> list[Line]:
        out: list[Line] = []
        for line in lines_of(path, self.shapes[path], self.version, self.cells):
            made = [line]
            for name, variant in on.items():
                made = self.step(self.specs[name], WORDS[variant], path, line.cell, made)
            out += made
        hand = self.hand[path]
        return [
            line._replace(text=hand[word]) if (word := line.text.split(" =")[0]) in hand and not line.cell else line
            for line in out
        ]

    def step(self, spec: Spec, word: str, path: str, cell: str, made: list[Line]) -> list[Line]:
        """What ``spec`` makes of the lines of one cell."""
        if cell == "note" and spec.notes:
            return [line._replace(text=line.text.replace("plain", word)) for line in made]
        if cell == "import" and spec.imports and path == CORE:
            return [Line(f"import {spec.name}_{word}", self.ending_above(path, made[-1])), *made]
        if spec.probe and path == UTIL and cell in ("import", "run"):
            new = self.probe_lines[0 if cell == "import" else 1]
            return [*(Line(text, made[-1].ending) for text in new), *made]
        if spec.on_top and path == CORE and cell == "cell 0":
            return [line._replace(text=line.text.replace("extra_0 = 0", f"extra_0 = '{word}'")) for line in made]
        for rule in spec.rules:
            if cell == f"cell {rule.cell}" and path in rule.files:
                (line,) = made
                return [Line(text, line.ending) for text in self.applied(rule, word, line.text)]
        return made

    @staticmethod
    def ending_above(path: str, line: Line) -> str:
        return line.ending

    def applied(self, rule: Rule, word: str, text: str) -> list[str]:
        number = rule.cell
        old = f"cell_{number} = {number}"
        match rule.kind:
            case "text":
                return text.replace(old, f"cell_{number} = '{word}'\nextra_{number} = 0").split("\n")
            case "syntax":
                return [text.replace(old, f"cell_{number} = wrapped({number}, '{word}')")]
            case "wrap":
                return [f"if {word}:", f"    {text}"]
            case "delete":
                return []
            case "before":
                return [f"above_{number} = '{word}'", text]
            case "after":
                return [text, f"below_{number} = '{word}'"]
            case "versions":
                versions = "<2" if self.version.startswith("1") else ">=2"
                return [text.replace(old, f"cell_{number} = '{word} {versions}'")]
            case "twice":
                return [text.replace(f"cell_{number} =", f"cell_{number} = {word} ="), f"twice_{number} = '{word}'"]
        raise AssertionError(rule.kind)

    def together(self, names: set[str]) -> set[str]:
        """The patches that are laid anew with ``names``, since they share files, or files with such as share them."""
        found = set(names)
        while True:
            files = {file for name in found for file in self.specs[name].files}
            more = {name for name in self.on if name not in found and not files.isdisjoint(self.specs[name].files)}
            if not more:
                return found
            found |= more

    # -- what is there ---------------------------------------------------------------------------------------------

    def found(self) -> dict[str, bytes]:
        """Every file of the site, but for the metadata and patchkit's own."""
        out = {}
        for folder, folders, names in os.walk(self.home):
            folders[:] = [name for name in folders if name != ".patchkit" and not name.endswith(".dist-info")]
            for name in names:
                path = Path(folder, name)
                out[path.relative_to(self.home).as_posix()] = path.read_bytes()
        return out

    def digest(self) -> str:
        """Of every file and folder of the site and the ledger: names, bytes, modes, times of writing."""
        seen = []
        for path in sorted(self.home.rglob("*")):
            if path.name in ("lock", "log.jsonl"):
                continue
            stat = path.lstat()
            times = stat.st_mtime_ns if path.is_file() else 0
            seen.append(
                (
                    path.relative_to(self.home).as_posix(),
                    stat.st_mode,
                    times,
                    path.read_bytes() if path.is_file() else b"",
                )
            )
        return hashlib.sha256(repr(seen).encode()).hexdigest()

    def digest_of_files(self) -> list[tuple[str, bytes, int, int]]:
        """Every file that is not patchkit's, with its bytes, mode and time of writing."""
        stats = {path: (self.home / path).stat() for path in self.found()}
        return [
            (path, data, stats[path].st_mode, stats[path].st_mtime_ns) for path, data in sorted(self.found().items())
        ]

    def record_holds(self) -> bool:
        """Whether every file has the hash that the installer wrote down."""
        (info,) = self.home.glob("demo-*.dist-info")
        rows = [row.split(",") for row in (info / "RECORD").read_text().splitlines()]
        return all(record_hash((self.home / row[0]).read_bytes()) == row[1] for row in rows if row[1])

    def stray(self) -> list[str]:
        """What lies in the ledger's folder although nothing refers to it."""
        folder = self.home / ".patchkit"
        if not folder.exists():
            return []
        ledger = (folder / "ledger.json").read_text() if (folder / "ledger.json").exists() else ""
        out = [path.name for path in folder.iterdir() if path.name not in ("ledger.json", "blobs", "log.jsonl", "lock")]
        blobs = folder / "blobs"
        return out + [path.name for path in (blobs.iterdir() if blobs.exists() else ()) if path.name not in ledger]
