"""Configurations of torch's compilers, as stand-ins: what of them a peer changed is found and restored."""

import sys
from types import ModuleType

import pytest

from prism_bench.backends.cuda.peers.library_state import LibraryState


class Entry:
    """A setting as torch's compilers keep it."""

    user_override = object()

    def __init__(self, default, alias=None):
        self.default, self.alias, self.env_value_default = default, alias, Entry.user_override


class Configuration(ModuleType):
    """A module of settings as torch's compilers have them."""

    def __setattr__(self, key, value):
        if key in self._config:
            self._config[key].user_override = value

    def __getattr__(self, key):
        entry = self._config[key]
        if entry.user_override is Entry.user_override:
            entry.user_override = list(entry.default) if isinstance(entry.default, list) else Entry.user_override
        return entry.default if entry.user_override is Entry.user_override else entry.user_override


def configured(name, **values):
    """A module with these settings, and one that is another name of another module's."""
    module = Configuration(name)
    vars(module)["_config"] = {key: Entry(value) for key, value in values.items()} | {"other": Entry(1, "else")}
    return module


def test_configurations_are_compared_key_by_key_without_aliases(monkeypatch):
    configuration = configured("torch._dynamo.config", limit=8, names=["a"])
    monkeypatch.setitem(sys.modules, "torch._dynamo.config", configuration)
    state = LibraryState.now()
    configuration.limit = 3
    configuration.names.append("b")
    assert ["torch._dynamo.config.limit (1 more keys)"] == state.restore().names
    assert (8, ["a"]) == (configuration.limit, configuration.names)


@pytest.mark.parametrize(("by_environment", "usual"), [(False, 8), (True, 5)])
def test_setting_the_usual_value_is_no_change(monkeypatch, by_environment, usual):
    configuration = configured("torch._dynamo.config", limit=8)
    if by_environment:
        configuration._config["limit"].env_value_default = usual
    monkeypatch.setitem(sys.modules, "torch._dynamo.config", configuration)
    state = LibraryState.now()
    configuration.limit = usual
    assert [] == state.restore().names
    configuration.limit = usual + 1
    assert ["torch._dynamo.config.limit"] == state.restore().names
