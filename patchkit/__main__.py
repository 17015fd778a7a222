"""``python -m patchkit``."""

from patchkit.cli.main import entrypoint

entrypoint()
