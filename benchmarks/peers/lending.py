"""What a tool that works in its own environment needs there: itself, and what the package that it imports imports."""

from __future__ import annotations

import os
import shutil

from scene import Case


def lend(own: str, case: Case, *names: str) -> None:
    """Copy modules of the tools' environment into the case's."""
    library = os.path.join(own, "python", "lib")
    site = os.path.join(library, os.listdir(library)[0], "site-packages")
    for name in names:
        source, target = os.path.join(site, name), os.path.join(case.site, name)
        if os.path.isdir(source):
            shutil.copytree(source, target)
        elif os.path.exists(source):
            shutil.copy(source, target)


MADE_UP = """\
import importlib.abc, importlib.machinery, importlib.util, sys, types


class Thing:
    def __init__(self, *args, **options):
        pass

    def __init_subclass__(cls, **options):
        pass

    def __class_getitem__(cls, item):
        return cls

    def __getattr__(self, name):
        return Thing

    def __call__(self, *args, **options):
        return self


class Anything(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Thing


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("vllm", "jax", "torch", "requests", "torchax", "flax", "numpy", "pathwaysutils"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Anything(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.append(Finder())
"""
