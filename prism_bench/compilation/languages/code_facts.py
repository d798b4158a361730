"""What a run record keeps of a case's machine code: who made it, of what, and what it takes."""

import hashlib
from typing import Any

from prism_bench.compilation.languages.building import BuildRequest, BuiltCode, source_hash
from prism_bench.compilation.toolchain import toolchain_of


def code_facts(built: BuiltCode, request: BuildRequest) -> dict[str, Any]:
    """Return language, compiler, source and machine code of what was built, its size, and what its entries take."""
    used = [kernel.resources for kernel in built.kernels.values()]
    return {
        "sass": built.sass,
        "language": built.language,
        "compiler": built.compiler,
        "source": source_identity(request),
        "architecture": f"sm_{request.architecture}",
        "entries": [str(instance) for instance in built.kernels],
        "registers": max((one.registers for one in used), default=0),
        "spill_bytes": sum(one.spill_stores + one.spill_loads for one in used),
        "shared_bytes": max((one.shared_bytes for one in used), default=0),
        "code_bytes": built.code_bytes,
        "compile_seconds": float(f"{built.seconds:.3g}"),
    }


def source_identity(request: BuildRequest) -> str | None:
    """Return a hash of what the compiler gets: the source, its entries, its options.

    None where options name folders of headers: what these hold is not known.
    """
    if toolchain_of(request.options).folders:
        return None
    parts = [source_hash(request.source), *map(str, request.instances), *request.options]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
