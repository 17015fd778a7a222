"""``patchkit compile-time`` with the real jax on a CPU."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support.documents import blocks, document

from patchkit.bench.compiletime.spec import load_spec, path_of
from patchkit.cli.main import main

pytestmark = [pytest.mark.real, pytest.mark.slow]

#: Lowers for a TPU, where there is none, what a function of a script makes: prints whether Mosaic is to compile it.
FOR_A_TPU = """
import sys
import jax, jax.export
here = jax.default_backend
jax.default_backend = lambda: "tpu"
module = {"__name__": "script"}
exec(open(sys.argv[1]).read(), module)
jitted, arguments, *note = module[sys.argv[2]]()
jax.default_backend = here
text = jax.export.export(jitted, platforms=["tpu"])(*arguments).mlir_module()
print("tpu_custom_call" in text, note)
"""

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def on_a_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.chdir(tmp_path)


def test_the_studys_attention(jax_python: Path, capsys: Capture) -> None:
    """The kernel runs in the interpreter, which is said; the study's figures stand beside."""
    assert main(["--python", str(jax_python), "compile-time", "attention", "--trials", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    xla, flash = found["variants"]
    assert (xla["name"], xla["note"]) == ("xla", None)
    assert (flash["name"], flash["note"]) == ("pallas-flash", "CPU, interpret mode: says nothing of Mosaic")
    assert all(timing["median"] > 0 for one in (xla, flash) for timing in one["ms"].values())
    assert found["versions"]["jax"] == "0.10.2"
    assert found["device"]["platform"] == "cpu"
    assert found["spec"]["published"]["pallas-flash"]["ms"]["compile"] == [50.7, 49.0, 52.0]


def test_the_pages_spec(jax_python: Path, tmp_path: Path, capsys: Capture) -> None:
    for block in blocks(document("docs/compile-time.md")):
        if block.title:
            path = tmp_path / block.title
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text)
    spec = str(tmp_path / "compile-time" / "gelu.toml")
    assert main(["--python", str(jax_python), "compile-time", spec, "--trials", "1"]) == 0
    out = capsys.readouterr().out
    assert "compiling approximate took" in out
    assert "published, not compared: somebody's page, TPU v5e" in out
    assert "50.7 (49.0 to 52.0)" in out


def test_a_cache_that_the_script_turns_on_is_noticed(jax_python: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "mine.toml").write_text(
        'schema = 1\nname = "mine"\nsummary = "s"\nscript = "mine.py"\n[[variant]]\nname = "a"\nfunction = "f"\n'
    )
    (tmp_path / "mine.py").write_text(
        "import jax\njax.config.update('jax_enable_compilation_cache', True)\n"
        "jax.config.update('jax_compilation_cache_dir', 'cache')\n"
        "jax.config.update('jax_persistent_cache_min_compile_time_secs', 0)\n"
        "jax.config.update('jax_persistent_cache_min_entry_size_bytes', -1)\n"
        "def f():\n    return jax.jit(lambda x: x * 2 + 1), (jax.numpy.ones(8),)\n"
    )
    told = []
    for trial in range(2):
        assert main(["--python", str(jax_python), "compile-time", "mine.toml", "--output", f"out{trial}"]) == 6
        told.append(capsys.readouterr().err)
    assert "the compile cache is on" in told[0]
    assert "came out of it" in told[1], "by jax's own count"


@pytest.mark.parametrize(("function", "printed"), [("xla", "False []\n"), ("pallas_flash", "True []\n")])
def test_on_a_tpu_the_kernel_goes_to_mosaic(function: str, printed: str, jax_python: Path) -> None:
    script = load_spec(path_of("attention")).script
    done = subprocess.run([jax_python, "-c", FOR_A_TPU, script, function], capture_output=True, text=True, check=True)
    assert done.stdout == printed
