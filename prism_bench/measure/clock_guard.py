"""What the names that a time is made with meant before any spec was imported.

Code that is measured runs in the clock's own process, so it can replace what the clock calls. Modules `keep` their
names when they are imported; a sample is refused where one of the names means something else by then.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from prism_bench.errors import MeasurementInvalid


@dataclass(frozen=True)
class _KeptName:
    """A name, the object that it belongs to with that object's names as they are now, and what it meant."""

    text: str
    owner: object
    names: Mapping[str, object]
    name: str
    value: object


_KEPT: dict[tuple[int, str], _KeptName] = {}
_STRANGE: list[str] = []


def keep(text: str, owner: object, names: tuple[str, ...] = ()) -> None:
    """Remember what the names of a module or class mean; without names all functions and properties of a class."""
    members = vars(owner)
    for name in names or [name for name, value in members.items() if callable(value) or isinstance(value, property)]:
        if name in members:
            _KEPT.setdefault((id(owner), name), _KeptName(f"{text}.{name}", owner, members, name, members[name]))


def distrust(name: str) -> None:
    """Remember that a name was replaced before it could be kept."""
    _STRANGE.append(name)


def replaced() -> list[str]:
    """Return the names that no longer mean what they meant."""
    return [*_STRANGE, *sorted(kept.text for kept in _KEPT.values() if kept.names.get(kept.name) is not kept.value)]


def refuse_replaced() -> None:
    """Raise MeasurementInvalid where one of the names was replaced."""
    names = replaced()
    if names:
        raise MeasurementInvalid(f"{', '.join(names[:3])} was replaced: no time can be trusted in this process")
