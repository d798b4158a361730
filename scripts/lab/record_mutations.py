"""Damaged run records, made of a sound one: structure-aware changes of its JSON, and damage to the file itself.

Every change is drawn by a seeded generator, so that a finding can be made again. A place is chosen by its path without
indices first, so that a rare field is changed as often as the thousands of counts.
"""

import copy
import gzip
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any

Path = tuple[str | int, ...]
HUGE = 10**400
LONG = "x" * 3_000_000
DEEP: list = []
for _ in range(400):
    DEEP = [DEEP]
DEEPER = "[" * 5_000 + "]" * 5_000  # beyond what Python's own writer can nest

HOSTILE: dict[str, tuple] = {
    "null": (None,),
    "boolean": (True, False),
    "number": (0, -1, 1, 2**31, 2**53 + 1, -(2**63), 2**64, HUGE, 0.0, -0.0, 1e-300, 5e-324, 1e300, -1e300, 0.5, 1e18),
    "text": ("", " ", "0", "nan", "inf", "ok", "[/x]", "[red]", "<script>alert(1)</script>", "&amp;", "a\0b", "\x1b[2J",
             "\r\n::error::x", "../../x", "/etc/passwd", "é\u202e", "%s %n {0} {{x}}", "|x|`y`", "\ud800", LONG),
    "list": ([], [None], [0], ["x"], [[]], [{}], [1e300], DEEP),
    "object": ({}, {"": None}, {"unit": 0}, {"x": {"y": {"z": {"a": {"b": {}}}}}}, {"id": "../../x"}),
}  # fmt: skip


@dataclass(frozen=True)
class Mutation:
    """A damaged record file: its content, what was done where, and whether `case` alone (by place) was touched."""

    data: bytes
    kind: str
    place: str
    case: int | None = None
    structured: bool = True


def mutations(sound: dict, seed: int, count: int) -> Iterator[Mutation]:
    """Yield `count` damaged forms of the record with that JSON."""
    rng, places, text = random.Random(seed), _places(sound), json.dumps(sound).encode()
    for _ in range(count):
        if rng.random() < _SHARE_OF_FILES:
            kind = rng.choice(list(_DAMAGES))
            yield Mutation(_DAMAGES[kind](text, _packed(text), rng), kind, "the file", structured=False)
        else:
            yield _changed(json.loads(text), rng.choice(rng.choice(places)), rng)  # far quicker than a deep copy


_SHARE_OF_FILES = 0.1


def _places(sound: dict) -> list[list[Path]]:
    """Return all paths, those alike but for indices together."""
    groups: dict[tuple, list[Path]] = {}
    for path in paths_in(sound):
        groups.setdefault(tuple("[]" if isinstance(one, int) else one for one in path), []).append(path)
    return list(groups.values())


def paths_in(value: object, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every value inside the JSON value, which is itself at `path`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        yield (*path, key)
        yield from paths_in(one, (*path, key))


def _changed(changed: dict, path: Path, rng: random.Random) -> Mutation:
    parent: Any = reduce(getitem, path[:-1], changed)
    kind = rng.choice(list(_CHANGES))
    words = _CHANGES[kind](parent, path[-1], rng)
    data = json.dumps(changed).encode()  # a lone surrogate as its escape, which is how it comes in files
    if kind == "nest deeper":
        data = data.replace(b'"@deeper@"', DEEPER.encode())
    dotted = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path).removeprefix(".")
    case = path[1] if len(path) > 1 and path[0] == "cases" and isinstance(path[1], int) else None
    return Mutation(_packed(data), kind, f"{dotted}{words}", case)


def _packed(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)


def _replace(parent: Any, key: Any, rng: random.Random) -> str:
    kind = rng.choice(list(HOSTILE))
    parent[key] = rng.choice(HOSTILE[kind])
    return f" = {kind} {json.dumps(parent[key])[:40]}" if kind != "number" else f" = {str(parent[key])[:40]}"


def _delete(parent: Any, key: Any, rng: random.Random) -> str:
    del parent[key]
    return " is gone"


def _duplicate(parent: Any, key: Any, rng: random.Random) -> str:
    if isinstance(parent, list):
        parent.insert(rng.randrange(len(parent) + 1), copy.deepcopy(parent[key]))
        return " is there twice"
    other = rng.choice(list(parent))
    parent[other] = copy.deepcopy(parent[key])
    return f" is at {other} too"


def _nest(parent: Any, key: Any, rng: random.Random) -> str:
    for _ in range(rng.choice((1, 1, 2, 30, 300))):
        parent[key] = [parent[key]] if rng.random() < 0.5 else {str(key): parent[key]}
    return " is nested"


def _nest_deeper(parent: Any, key: Any, rng: random.Random) -> str:
    parent[key] = "@deeper@"
    return " is 5,000 lists deep"


def _rename(parent: Any, key: Any, rng: random.Random) -> str:
    if isinstance(parent, list):
        return _delete(parent, key, rng)
    name = rng.choice((f"{key}_", str(key).upper(), "", "a\0b", "[/x]", "../x", LONG[:3000]))
    parent[name] = parent.pop(key)
    return f" is called {name[:20]!r}"


def _add(parent: Any, key: Any, rng: random.Random) -> str:
    value = rng.choice(HOSTILE[rng.choice(list(HOSTILE))])
    if isinstance(parent, list):
        parent.append(value)
    else:
        parent["a newer field"] = value
    return " has a neighbour that nobody knows"


def _scale(parent: Any, key: Any, rng: random.Random) -> str:
    value = parent[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _replace(parent, key, rng)
    by = rng.choice((-1, 0, 1e-9, 1e9, 1e-30, 1e30, 1e150, 10**30))
    parent[key] = value * by
    return f" times {by:g}"


def _bulk(parent: Any, key: Any, rng: random.Random) -> str:
    parent[key] = [parent[key]] * 3000
    return " is 3,000 times in a list"


_CHANGES: dict[str, Callable[[Any, Any, random.Random], str]] = {
    "replace": _replace, "delete": _delete, "duplicate": _duplicate, "nest": _nest, "nest deeper": _nest_deeper,
    "rename": _rename, "add": _add, "scale": _scale, "bulk": _bulk,
}  # fmt: skip


def _flipped(data: bytes, rng: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 50))):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


_TEXTS = (b"", b"{}", b"[]", b"null", b"NaN", b"\xff\xfe", DEEPER.encode(), b"{" * 9999, b'"' + b"x" * 9999)
_DAMAGES: dict[str, Callable[[bytes, bytes, random.Random], bytes]] = {
    "file cut": lambda text, packed, rng: packed[: rng.randrange(len(packed))],
    "file with flipped bits": lambda text, packed, rng: _flipped(packed, rng),
    "text cut": lambda text, packed, rng: _packed(text[: rng.randrange(len(text))]),
    "text with flipped bits": lambda text, packed, rng: _packed(_flipped(text, rng)),
    "file with a tail": lambda text, packed, rng: packed + rng.choice((b"\0" * 9, b"x", packed)),
    "other text": lambda text, packed, rng: _packed(rng.choice(_TEXTS)),
    "not compressed": lambda text, packed, rng: text[: rng.choice((len(text), len(text) // 2))],
}
