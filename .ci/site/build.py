"""Builds the documentation's site: the documents of the repository, and pages that are made from the code.

``python .ci/site/build.py OUT``. Every warning is an error: a link to a page or heading that is not there, a page that
no table of contents has, a block in a language that does not lex.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from patchkit.bench.render.jsonform import report_schema
from patchkit.cli.commands import COMMANDS
from patchkit.cli.main import main
from patchkit.model.recipe_schema import recipe_schema
from patchkit.model.schema import patch_schema

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUTSIDE = (
    *("README.md", "CHANGELOG.md", "benchmarks/README.md"),
    *("examples/patches-package/README.md", "examples/everyday/README.md", "examples/notebook/README.md"),
    "examples/torch-tpu/README.md",
)
#: The site's table of contents. A page that is missing here is a warning, and so an error.
CONTENTS = {
    "Learn": ["docs/tutorial"],
    "How to": [
        *("docs/how-to", "docs/environments", "docs/integrations", "docs/live", "docs/transplant", "docs/rig"),
        *("docs/drift", "docs/installs"),
    ],
    "Experiments": [
        *("docs/rebench", "docs/recipes", "docs/engines", "docs/readers", "docs/statistics", "docs/reports"),
        *("docs/trace", "docs/compile-time"),
    ],
    "Reference": [
        *("docs/commands", "reference/help", "docs/patch-file", "reference/schemas", "docs/lint", "docs/errors"),
        "docs/python-api",
    ],
    "Explanation": ["docs/study", "docs/how-it-works", "docs/guarantees", "docs/measured"],
    "Project": [
        "README",
        "docs/contributing",
        "benchmarks/README",
        *("examples/everyday/README", "examples/notebook/README", "examples/torch-tpu/README"),
        *("examples/patches-package/README", "CHANGELOG"),
    ],
}


def build(out: Path) -> int:
    """Build into ``out``; the status of sphinx-build."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch)
        shutil.copytree(ROOT / "docs", source / "docs")
        for name in OUTSIDE:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
        (source / "reference").mkdir()
        (source / "reference/help.md").write_text(help_page(), encoding="utf-8")
        (source / "reference/schemas.md").write_text(schemas_page(), encoding="utf-8")
        with (source / "docs/index.md").open("a", encoding="utf-8") as file:
            file.write(contents())
        words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-c", str(HERE)]
        return subprocess.run([*words, str(source), str(out)], check=False).returncode


def contents() -> str:
    """The tables of contents, as the start page has them."""
    blocks = []
    for caption, pages in CONTENTS.items():
        lines = "\n".join(f"/{page}" for page in pages)
        blocks.append(f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n```\n")
    return "".join(blocks)


def help_page() -> str:
    """What ``--help`` prints, of every command."""
    parts = ["# Command line help\n\nMade from the parser when this site was built.\n"]
    for words in ([], *([name] for name in sorted(COMMANDS))):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            main([*words, "--help"])
        parts.append(f"## {' '.join(['patchkit', *words])}\n\n```text\n{said.getvalue()}```\n")
    return "\n".join(parts)


def schemas_page() -> str:
    """The JSON Schemas of all files that people or programs read."""
    parts = ["# Schemas\n\nMade from the code when this site was built. Editors complete and check by them.\n"]
    for name, schema in (("Patch file", patch_schema()), ("Recipe", recipe_schema()), ("Report", report_schema())):
        parts.append(f"## {name}\n\n```json\n{json.dumps(schema, indent=2)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1])))
