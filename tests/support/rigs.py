"""Wheels that stand for the TPU stack, small enough to make a whole rig of in seconds; no index is asked.

The engine is the made-up one of ``fake_vllm``, which has to be built as a rig's is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from support.dists import make_wheel

from patchkit.cli.main import main
from patchkit.ops.apply import apply_site
from patchkit.rig.recipe import Recipe
from patchkit.rig.run import adaptations, site_of_rig
from patchkit.rig.state import STEPS, Rig, open_rig, write_file, write_rig
from patchkit.rig.tiny import model_files

PATCHES = Path(__file__).parents[2] / "patchkit" / "rig" / "patches"

FAKE = Path(__file__).parent / "fake_vllm"

_VLLM = """
import os

from vllm import fake
from vllm.fake import SamplingParams
from vllm.platforms import tpu_platform_plugin


class LLM(fake.LLM):
    def __init__(self, **settings):
        assert tpu_platform_plugin() == "tpu"
        assert settings["async_scheduling"] is False
        assert os.path.isfile(os.path.join(settings["model"], "config.json"))
        super().__init__(**settings)
"""
_UTILS = """
GBYTES = 1024**3


def hbm_usage_bytes(devices):
    if vllm_envs.VLLM_TPU_USING_PATHWAYS:
        return []
    return [device.memory_stats() for device in devices]


def get_device_name(num_devices=None):
    kind = jax.devices()[0].device_kind
    return kind


def make_optimized_mesh(axis_shapes, axis_names, *, devices=None):
    devices = sorted(devices, key=lambda x: x.coords)
    return devices
"""
_ATTENTION = """
import tpu_inference.kernels.ragged_paged_attention.v3.kernel as rpa

ragged_paged_attention = rpa.ragged_paged_attention
"""
_PATCHER = """
from tpu_inference.models.vllm.experimental.qwen3_omni_patcher import \\
    maybe_apply_qwen3_omni_patches
from tpu_inference.models.vllm.experimental.qwen3_vl_patcher import \\
    maybe_apply_qwen3_vl_patches


def patch_vllm_model(vllm_model):
    maybe_apply_qwen3_vl_patches(vllm_model)
    maybe_apply_qwen3_omni_patches(vllm_model)
"""
_TOWER = """
from vllm.model_executor.models.qwen3_omni_moe_thinker import \\
    Qwen3OmniMoeThinkerForConditionalGeneration

JITTABLE_ARCHS = {
    Qwen3OmniMoeThinkerForConditionalGeneration,
}


def has_jittable_vision(vllm_model):
    from tpu_inference.models.vllm.experimental.qwen3_vl_patcher import \\
        is_qwen3_vl
    return is_jittable_architecture(vllm_model) or is_qwen3_vl(vllm_model)
"""
_COMPILER = """
def get_compile_options(env_options_overrides):
    return list(env_options_overrides.items())
"""
_PLATFORMS = """
def tpu_platform_plugin():
    try:
        import libtpu  # noqa: F401

        return "tpu"
    except ImportError:
        return None
"""

_STRUCTURED = """
class StructuredOutputManager:
    def __init__(self, vllm_config):
        self._use_async_grammar_compilation = (
            vllm_config.parallel_config.distributed_executor_backend
            != "external_launcher"
        )
"""

RECIPE = Recipe(
    "0.24.0",
    (sys.version_info.major, sys.version_info.minor),
    "torch==2.13.0",
    ("jax==0.10.2",),
    ("torchax==0.0.13", "tpu-inference==0.24.0"),
    ("nothing but the name",),
    1,
)


def fake_files(package: str) -> dict[str, str]:
    """The files of a made-up package, by their path."""
    found = sorted((FAKE / package).rglob("*.py"))
    return {path.relative_to(FAKE).as_posix(): path.read_text(encoding="utf-8") for path in found}


def _torchax() -> dict[str, str]:
    """The lines that the patch takes out."""
    edits = tomllib.loads((PATCHES / "rig-torchax.toml").read_text(encoding="utf-8"))["edit"]
    files = {}
    for path, opening, closing in (("torchax/amp.py", "{", "}"), ("torchax/decompositions.py", "[", "]")):
        lines = "".join(edit["find"] for edit in edits if edit["file"] == path)
        files[path] = f"LINES = {opening}\n{lines}{closing}\n"
    return files


def make_wheels(folder: Path, *, without: str = "") -> None:
    """All wheels of :data:`RECIPE`, but for one."""
    v3 = "tpu_inference/kernels/ragged_paged_attention/v3"
    experimental = "tpu_inference/models/vllm/experimental"
    wheels: dict[str, tuple[str, dict[str, str]]] = {
        "torch": ("2.13.0", {"torch.py": ""}),
        "jax": (
            "0.10.2",
            {
                **fake_files("jax"),
                "jax/_src/compiler.py": _COMPILER,
            },
        ),
        "torchax": ("0.0.13", _torchax()),
        "tpu-inference": (
            "0.24.0",
            {
                "tpu_inference/__init__.py": "",
                "tpu_inference/utils.py": _UTILS,
                f"{v3}/util.py": "def get_tpu_version():\n    kind = jax.devices()[0].device_kind\n    return kind\n",
                "tpu_inference/layers/common/attention_interface.py": _ATTENTION,
                f"{experimental}/model_patcher.py": _PATCHER,
                f"{experimental}/vision_tower_jit.py": _TOWER,
            },
        ),
        "vllm-tpu": (
            "0.24.0",
            {
                **fake_files("vllm"),
                "vllm/__init__.py": _VLLM,
                "vllm/fake.py": fake_files("vllm")["vllm/__init__.py"],
                "vllm/platforms/__init__.py": _PLATFORMS,
                "vllm/v1/structured_output/__init__.py": _STRUCTURED,
            },
        ),
    }
    for name, (version, files) in wheels.items():
        if name != without:
            # As the released one: a wheel of another Python than the rig's.
            tag = "cp312-none-any" if name == "vllm-tpu" else "py3-none-any"
            make_wheel(folder, name, version, files, tag=tag)


def engine_patch(name: str, find: str, replace: str, tags: str = "[]") -> str:
    """A patch of the made-up engine."""
    return (
        f'schema = 1\nname = "{name}"\nsummary = "the patch {name}"\ntags = {tags}\n'
        '[target]\nrequirement = "vllm-tpu"\n[[edit]]\nfile = "vllm/engine.py"\n'
        f"find = {find!r}\nreplace = {replace!r}\n"
    )


def make_rig(folder: Path) -> Rig:
    """A finished rig of the made-up wheels, without pip: what `rig create` leaves in seconds less."""
    python = folder / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(python)], check=True)
    rig = Rig(str(folder), "0.24.0", dict.fromkeys(STEPS, "made by hand"))
    site = site_of_rig(rig)
    make_wheels(folder / "wheels")
    for wheel in (folder / "wheels").iterdir():
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site.home)
    apply_site(site, adaptations(), notice=lambda text: None)
    for name, data in model_files().items():
        write_file(os.path.join(rig.model, name), data)
    write_rig(rig)
    return rig


def real_rig() -> Rig:
    """The real rig that PATCHKIT_RIG names, or one of the test cache, which is made where there is none (minutes)."""
    named = os.environ.get("PATCHKIT_RIG")
    if named is None:
        root = Path(__file__).parents[1]
        cache = os.environ.get("PATCHKIT_TEST_CACHE") or str(root / "real" / ".cache")
        named = os.path.join(cache, "rig-0.24.0")
        assert main(["rig", "create", named]) == 0
    return open_rig(named)
