"""Scripts as modules, so that tests reach their functions."""

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def loaded(name: str) -> ModuleType:
    """The script of that name, without leaving bytecode beside it, or what it puts on the path."""
    loader = SourceFileLoader(name, str(SCRIPTS / name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.setattr(sys, "path", list(sys.path))
        module = module_from_spec(spec_from_loader(name, loader))
        loader.exec_module(module)
    return module
