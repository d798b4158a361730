"""What is cut out of sources that hold host code before NVRTC and the emulator get them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prism_bench.catalogue import Catalogue
from prism_bench.compilation.device_code import cut_source
from prism_bench.compilation.host_source.device_side import Cut
from prism_bench.compilation.toolchain import is_prebuilt, toolchain_of
from prism_bench.errors import CompilationFailed
from prism_bench.spec.case import Device
from prism_bench.spec.kernel import CUDA, KernelSpec

How = Literal["cut", "whole", "nvcc", "prebuilt", "refused"]
MEANING = {
    "whole": "holds no host code: compiled as it is", "nvcc": "goes to nvcc as it is; the emulator gets it without:",
    "prebuilt": "is machine code: nothing is compiled", "cut": "compiled without:", "refused": "",
}  # fmt: skip


@dataclass(frozen=True)
class SourceCuts:
    """One source of the catalogue: how it reaches the compiler, the kernels that it has, and what is cut out of it."""

    source: Path
    kernels: tuple[str, ...]
    how: How
    cuts: tuple[Cut, ...] = ()
    complaint: str = ""

    @property
    def meaning(self) -> str:
        """What happens to the source, in words."""
        return self.complaint or MEANING[self.how]


def source_cuts(catalogue: Catalogue, filters: Sequence[str] = ()) -> list[SourceCuts]:
    """Return by source what is cut out of it for the chosen cases."""
    names: dict[tuple[Path, tuple[str, ...]], dict[str, KernelSpec]] = {}
    entries: dict[tuple[Path, tuple[str, ...]], set[str]] = {}
    for case in [*catalogue.cases(filters), *catalogue.edges(filters)]:
        if case.spec.language == CUDA:
            key = case.spec.source_file, case.spec.options
            names.setdefault(key, {})[case.kernel] = case.spec
            entries.setdefault(key, set()).update(case.plan.entries(Device()))
    return [_cuts(*key, tuple(names[key]), entries[key]) for key in sorted(names)]


def _cuts(source: Path, options: tuple[str, ...], kernels: tuple[str, ...], entries: set[str]) -> SourceCuts:
    if is_prebuilt(source):
        return SourceCuts(source, kernels, "prebuilt")
    by_nvcc = toolchain_of(options).compiler == "nvcc"
    try:
        cut = cut_source(source, tuple(sorted(entries)), options)
    except CompilationFailed as error:
        return SourceCuts(source, kernels, "nvcc" if by_nvcc else "refused", (), str(error))
    if cut is None:
        return SourceCuts(source, kernels, "whole")
    return SourceCuts(source, kernels, "nvcc" if by_nvcc else "cut", cut.cuts)
