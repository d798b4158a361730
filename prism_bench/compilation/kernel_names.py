"""Names of the kernels that a CUDA source defines, for the error about an entry that it lacks."""

import re
from collections.abc import Iterable

_ATTRIBUTE = re.compile(r"__(?:launch_bounds|cluster_dims|maxnreg|block_size)__\s*\((?:[^()]|\([^()]*\))*\)")
_KERNEL = re.compile(r"__global__\s+[\w\s:*&<>,]*?\b(\w+)\s*\(")


def kernels_in(code: str) -> tuple[str, ...]:
    """Return the names of all `__global__` functions in `code`, each once, in the order of the source.

    Kernels whose names a macro makes are not found.
    """
    return tuple(dict.fromkeys(_KERNEL.findall(_ATTRIBUTE.sub("", code))))


def missing_entry(entries: Iterable[str], code: str, source: str) -> str | None:
    """Return what to say of the first entry whose name occurs nowhere in `code`; None where all occur.

    `entries` are names or template instances (`softmax<256, float>`), `source` is the file's name for the message.
    """
    for entry in entries:
        name = entry.partition("<")[0].rpartition("::")[2].strip()
        if not re.search(rf"\b{re.escape(name)}\b", code):
            defined = ", ".join(kernels_in(code)) or "no kernel at all"
            return f"{source}: no kernel '{name}', which the spec launches; the source defines {defined}"
    return None
