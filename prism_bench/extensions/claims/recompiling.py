"""Machine code that the sources of a claim's side give here: by the compiler of this process, or by one in a jail."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prism_bench.compilation import sass_hash
from prism_bench.compilation.code import toolchain
from prism_bench.compilation.program import compiler_of
from prism_bench.extensions.claims.making import built_for
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import CUDA

if TYPE_CHECKING:
    from prism_bench.extensions.judge.cell import JailCell


@dataclass(frozen=True)
class RecompiledCode:
    """Cubins, the compiler that made them, and the symbols of their entries by the entries' texts."""

    compiler: str
    symbols: dict[str, str]
    cubins: tuple[bytes, ...]

    @property
    def hashes(self) -> set[str]:
        """The hashes of the instructions of each cubin."""
        return {sass_hash(cubin) for cubin in self.cubins}

    @property
    def toolchains(self) -> set[bytes]:
        """The notes that ptxas leaves of itself in each cubin."""
        return {toolchain(cubin) for cubin in self.cubins}


def compiled_here(case: Case, device: Device) -> RecompiledCode | None:
    """Return the machine code of a case whose source is trusted; None where it launches nothing."""
    made = built_for(case, device)
    if made is None:
        return None
    symbols = {str(instance): kernel.symbol for instance, kernel in made.kernels.items()}
    return RecompiledCode(made.compiler, symbols, tuple(kernel.path.read_bytes() for kernel in made.kernels.values()))


def compiled_in_jail(case: Case, device: Device, cell: "JailCell") -> RecompiledCode | None:
    """Return the machine code of a case in CUDA C++ by the compiler in a jail; None for another language."""
    spec = case.spec
    if spec.language != CUDA or not spec.source:
        return None
    entries = sorted(case.plan.entries(device))
    made, cubin = cell.machine_code(spec.source_file, entries, str(device.compute_capability), spec.options)
    return RecompiledCode(compiler_of(spec.source_file, spec.options), dict(made.symbols), (cubin,))
