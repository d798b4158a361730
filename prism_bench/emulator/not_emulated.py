"""Kernels that the emulator does not claim to run, and why."""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from prism_bench.emulator.source import flat_code

# The first that matches names the reason, so the more specific ones are first.
_REASONS = (
    ("wgmma", r"\bwgmma\b"),
    ("tensor memory accelerator", r"\bCUtensorMap\b|\bcp\.async\.bulk\b|\bcp_async_bulk\w*"),
    ("fifth-generation tensor cores", r"\btcgen05\b"),
    ("mbarrier", r"\bmbarrier\b|\bcuda::barrier\b|\b__mbarrier_\w+"),
    ("thread block clusters", r"\b__cluster_dims__\b|\bthis_cluster\b|\bcluster_group\b|\b__cluster_\w+"),
    ("textures or surfaces", r"\bcuda(Texture|Surface)Object_t\b|\b(tex|surf)[123]D\w*\s*[<(]"),
    ("dynamic parallelism", r"<<<"),
    ("8-bit and smaller floating types", r"\b__nv_fp[468]\w*|\bcuda_fp[468]\.h\b"),
    ("libcu++", r"#\s*include\s*<cuda/(?!std/)"),
    ("named barriers", r"\b__barrier_(sync|sync_count|arrive)\b"),
    ("inline PTX", r"\b(?:asm|__asm|__asm__)\b"),  # the word alone: a macro may end, or be, the rest
)  # fmt: skip
_NAME = re.compile(r"\b[A-Za-z_]\w*")
_CONTINUED = re.compile(r"\\\r?\n")  # a line that goes on in the next one, within a word too
_CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)$")


def not_emulated(path_or_text: Path | str, include_dirs: Iterable[Path | str] = ()) -> str | None:
    """Return why the emulator cannot run this source, or None if it can.

    Only the code that the CPU compiles counts: the device's branch of an `#ifdef CPU_CUDA` is ignored.
    """
    return _reason(flat_code(path_or_text, tuple(map(Path, include_dirs))))


def entry_not_emulated(entry: str, path_or_text: Path | str, include_dirs: Iterable[Path | str] = ()) -> str | None:
    """Return why the emulator lacks an entry of a source that it can run: a name in it is in a device's branch alone.

    `kernel<Thirds>` is such an entry where `struct Thirds` is within `#ifndef CPU_CUDA`, declared before it or not.
    """
    code = flat_code(path_or_text, tuple(map(Path, include_dirs)))
    for name in _NAME.findall(entry):
        if name not in ("true", "false") and _is_of_devices(name, code):
            return f"'{name}' is in code for devices alone"
    return None


@lru_cache(maxsize=1024)
def _is_of_devices(name: str, code: str) -> bool:
    seen, word = _seen_by_cpu(code), rf"\b{name}\b"
    definition = rf"\b(?:struct|class|union|enum)\s+{name}\b[^;{{}}()]*\{{"  # not a declaration ahead of it
    return any(re.search(one, code) and not re.search(one, seen) for one in (word, definition))


@lru_cache(maxsize=256)
def _reason(code: str) -> str | None:
    seen = _seen_by_cpu(code)
    return next((reason for reason, pattern in _REASONS if re.search(pattern, seen)), None)


@lru_cache(maxsize=64)
def _seen_by_cpu(code: str) -> str:
    """Return the lines outside the device's branches."""
    open_branches: list[bool | None] = []
    kept: list[str] = []
    for line in _CONTINUED.sub("", code).split("\n"):
        condition = _CONDITION.match(line)
        if condition:
            _follow(open_branches, condition[1], condition[2])
        elif False not in open_branches:
            kept.append(line)
    return "\n".join(kept)


def _follow(open_branches: list[bool | None], directive: str, rest: str) -> None:
    """Open or close a conditional: True where the CPU sees it, False where not, None where it is about other names."""
    if directive in ("if", "ifdef", "ifndef"):
        negated = directive == "ifndef" or "!" in rest
        open_branches.append(not negated if "CPU_CUDA" in rest else None)
    elif directive == "endif" and open_branches:
        open_branches.pop()
    elif open_branches and open_branches[-1] is not None:
        open_branches[-1] = not open_branches[-1]
