"""``patchkit transplant`` on released wheels: the study's attention kernel, and a small package through an upgrade.

What a copy without an edit answers must be what the release answers; what an edited one must, is written here by hand.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from released import REPOSITORY

pytestmark = pytest.mark.real

Wheel = Callable[[str, str], Path]
Install = Callable[[Path, Path], Path]
V3 = "tpu_inference.kernels.ragged_paged_attention.v3"


def patchkit(site: Path, work: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command on a site, in a working folder."""
    command = [sys.executable, "-m", "patchkit", "--site", str(site), *arguments]
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(command, cwd=work, env=env, capture_output=True, text=True, timeout=300, check=False)


def edit(path: Path, old: str, new: str, count: int = 1) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == count
    path.write_text(text.replace(old, new), encoding="utf-8")


# --- idna, in a real environment


class Environment:
    """A real environment with one released package, and a working folder."""

    def __init__(self, root: Path) -> None:
        venv.create(root / "env", with_pip=False)
        self.python = root / "env" / "bin" / "python"
        (self.site,) = (root / "env" / "lib").glob("python3*/site-packages")
        self.work = root / "work"
        self.work.mkdir()
        self.probes = root / "probes"

    def take(self, wheel: Path, install: Install) -> None:
        """Install a wheel in the place of what is there of it."""
        for old in self.site.glob("idna*"):
            shutil.rmtree(old)
        install(wheel, self.site)

    def ask(self, code: str, **more: str) -> tuple[Any, str]:
        """What a script prints as JSON, and its stderr."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PATCHKIT"))}
        env |= {"PATCHKIT_PROBES": str(self.probes), **more}
        script = self.work / "script.py"
        script.write_text(f"import json\n{code}", encoding="utf-8")
        done = subprocess.run([self.python, script], env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path)


NAMES = [
    "xn--zckzah",
    "faß.de",
    "ドメイン.テスト",
    "a" * 64,
    "",
    "-a",
    "نامهای.com",
    "ex.ample.com",
    "xn--a",
    "۱۲",
    "a‍b",
]
ANSWERS = f"""
import idna
from idna import encode, decode, IDNAError
def ask(function, name, **options):
    try:
        return repr(function(name, **options))
    except IDNAError as error:
        return f"{{error.__class__.__name__}}: {{error}}"
def answers():
    return [[ask(encode, name), ask(encode, name, uts46=True), ask(decode, name)] for name in {NAMES!r}]
"""


def test_a_copy_without_an_edit_answers_what_the_release_answers(
    environment: Environment, wheel: Wheel, install: Install
) -> None:
    environment.take(wheel("idna", "3.6"), install)
    done = patchkit(environment.site, environment.work, "transplant", "idna", "my_idna")
    assert done.returncode == 0, done.stderr
    stock, _ = environment.ask(ANSWERS + "print(json.dumps(answers()))")
    assert len({str(answer) for answer in stock}) > 8
    ours, said = environment.ask(ANSWERS + "import my_idna.activate\nprint(json.dumps(answers()))")
    assert ours == stock
    assert "probe patch=my_idna" in said
    assert "file=idna/core.py function=encode " in said
    startup = str(environment.work / "my_idna" / "_transplant" / "startup")
    early, _ = environment.ask(ANSWERS + "print(json.dumps(answers()))", PYTHONPATH=startup)
    assert early == stock
    reports = [json.loads(path.read_text()) for path in (environment.probes / "transplants").glob("*.json")]
    left = [item for report in reports for one in report["substitutions"] for item in one["not_rebound"]]
    assert left == []


def test_an_edit_lives_through_an_upgrade_and_becomes_a_patch(
    environment: Environment, wheel: Wheel, install: Install
) -> None:
    environment.take(wheel("idna", "3.6"), install)
    assert patchkit(environment.site, environment.work, "transplant", "idna", "my_idna").returncode == 0
    core = environment.work / "my_idna" / "core.py"
    edit(core, "        raise IDNAError('Empty domain')\n", "        raise IDNAError('No domain at all')\n", 2)
    code = ANSWERS + "import my_idna.activate\nprint(json.dumps([ask(encode, ''), idna.__version__]))"
    assert environment.ask(code)[0] == ["IDNAError: No domain at all", "3.6"]

    environment.take(wheel("idna", "3.7"), install)
    script = environment.work / "script.py"
    refused = subprocess.run([environment.python, script], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "is not the one of idna 3.6 that was copied" in refused.stderr
    done = patchkit(environment.site, environment.work, "--json", "transplant", "update", "my_idna")
    assert done.returncode == 0, done.stderr
    states = {file["path"]: file["state"] for file in json.loads(done.stdout)["files"]}
    assert {states[name] for name in ("core.py",)} == {"merged"}
    assert {states[name] for name in ("idnadata.py", "package_data.py")} == {"updated"}
    assert environment.ask(code)[0] == ["IDNAError: No domain at all", "3.7"]
    stock = (environment.site / "idna" / "core.py").read_text(encoding="utf-8")
    assert core.read_text(encoding="utf-8") == stock.replace("'Empty domain'", "'No domain at all'")

    (environment.work / "patches").mkdir()
    done = patchkit(environment.site, environment.work, "transplant", "to-patch", "my_idna", "--name", "no-domain")
    assert done.returncode == 0, done.stderr
    assert patchkit(environment.site, environment.work, "apply", "no-domain").returncode == 0
    assert (environment.site / "idna" / "core.py").read_text(encoding="utf-8") == core.read_text(encoding="utf-8")
    assert patchkit(environment.site, environment.work, "revert", "no-domain").returncode == 0
    assert (environment.site / "idna" / "core.py").read_text(encoding="utf-8") == stock


# --- the attention kernel of the study


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, wheel: Wheel, install: Install) -> Path:
    return install(wheel("tpu-inference", "0.24.0"), tmp_path_factory.mktemp("tree") / "site-packages")


def kernel(python: Path, tree: Path, *copy: Path, **more: str) -> tuple[Any, str]:
    script = Path(__file__).parent / "grafted.py"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PATCHKIT"))}
    done = subprocess.run(
        [python, script, tree, *copy], env={**env, **more}, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.mark.slow
def test_the_studys_kernel_runs_from_the_copy_with_another_block_size(
    tree: Path, tmp_path: Path, jax_python: Path
) -> None:
    done = patchkit(tree, tmp_path, "--json", "transplant", V3, "my_rpa")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert (made["distribution"].replace("_", "-"), made["version"], len(made["files"])) == (
        "tpu-inference",
        "0.24.0",
        6,
    )
    copy = tmp_path / "my_rpa"
    stock, _ = kernel(jax_python, tree)
    name = "RPAd-p_128-bq_1_1-bkv_2048_2048"  # what the study saw
    assert stock["names"] == dict.fromkeys(["module", "table", "attention"], name)
    same, _ = kernel(jax_python, tree, copy)
    assert same["names"] == stock["names"]

    edit(copy / "kernel.py", "bkv_sz = min(min_bkv_sz_to_peak, max_kv)", "bkv_sz = min(256, max_kv)", 2)
    edit(copy / "kernel.py", "bkv_csz = min(min_bkv_sz_to_peak, max_kv)", "bkv_csz = min(256, max_kv)", 2)
    probes = tmp_path / "probes"
    ours, said = kernel(jax_python, tree, copy, PATCHKIT_PROBES=str(probes), PATCHKIT_TRANSPLANT="verbose")
    assert ours == {
        "names": dict.fromkeys(["module", "table", "attention"], "RPAd-p_128-bq_1_1-bkv_256_256"),
        "lower": True,
        "kernel_body": f"{copy.name}.kernel",
        "util": True,
    }
    fired = [line for line in said.splitlines() if " probe " in line]
    assert [line.split("function=")[1].split()[0] for line in fired] == ["get_kv_cache_shape", "ragged_paged_attention"]
    (report,) = [json.loads(path.read_text()) for path in (probes / "transplants").glob("*.json")]
    (eager,) = report["substitutions"]
    # Three names of util in mla.v1.kernel, the attention in attention.py; then what the script holds.
    assert eager["rebound"]["module global"] == 4
    assert (eager["rebound"]["partial"], eager["rebound"]["list"]) == (1, 1)
    places = {(item["object"].removeprefix(f"{V3}.kernel."), item["where"]) for item in eager["not_rebound"]}
    assert places == {
        (
            "merge_kv",
            "an object of jaxlib._jax.PjitFunction, which was made of it before: what it compiled or keeps is stock, "
            "in global jitted of module __main__",
        ),
        ("ragged_paged_attention", "local stock of function __main__.main, which is running"),
    }


@pytest.mark.slow
def test_the_copys_edit_as_a_patch_gives_the_same_kernel(tree: Path, tmp_path: Path, jax_python: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(tree, site)
    assert patchkit(site, tmp_path, "transplant", V3, "my_rpa").returncode == 0
    edit(tmp_path / "my_rpa" / "kernel.py", "min(min_bkv_sz_to_peak, max_kv)", "min(128, max_kv)", 4)
    (tmp_path / "patches").mkdir()
    done = patchkit(site, tmp_path, "transplant", "to-patch", "my_rpa", "--name", "small-blocks")
    assert done.returncode == 0, done.stderr
    assert patchkit(site, tmp_path, "apply", "small-blocks").returncode == 0
    found, _ = kernel(jax_python, site)
    assert set(found["names"].values()) == {"RPAd-p_128-bq_1_1-bkv_128_128"}


@pytest.mark.parametrize("newer", ["0.25.0", "0.29.0", "0.32.0"])
def test_the_edit_lives_through_later_releases(
    tree: Path, tmp_path: Path, wheel: Wheel, install: Install, newer: str
) -> None:
    assert patchkit(tree, tmp_path, "transplant", V3, "my_rpa").returncode == 0
    old, new = "min(min_bkv_sz_to_peak, max_kv)", "min(256, max_kv)"
    edit(tmp_path / "my_rpa" / "kernel.py", old, new, 4)
    site = install(wheel("tpu-inference", newer), tmp_path / "newer")
    done = patchkit(site, tmp_path, "--json", "transplant", "update", "my_rpa")
    assert done.returncode == 0, done.stdout
    stock = (site / V3.replace(".", "/") / "kernel.py").read_text(encoding="utf-8")
    expected = stock.replace(old, new).replace(f"from {V3}.", "from my_rpa.")
    assert (tmp_path / "my_rpa" / "kernel.py").read_text(encoding="utf-8") == expected
    diff = patchkit(site, tmp_path, "transplant", "diff", "my_rpa")
    changed = [line for line in diff.stdout.splitlines() if line[:1] in "+-" and line[:3] not in ("---", "+++")]
    assert [line[0] for line in changed] == ["-", "+"] * 4
