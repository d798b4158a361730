"""Options of a source's compiler. Which compiler it is goes with them, as the first one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

CompilerName = Literal["nvrtc", "nvcc"]
_MARK = "--compiler="
PREBUILT = (".cubin", ".fatbin", ".so", ".o", ".a", ".pyd", ".dll")  # machine code: there is nothing to compile


@dataclass(frozen=True)
class Toolchain:
    """A compiler and the options that it gets."""

    compiler: CompilerName
    options: tuple[str, ...]

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders of headers among the options."""
        return tuple(Path(option[2:]) for option in self.options if option.startswith("-I"))

    @property
    def names_standard(self) -> bool:
        """Whether the options name the version of C++."""
        return any(option.startswith(("-std", "--std")) for option in self.options)


def marked(compiler: CompilerName, options: Iterable[str]) -> tuple[str, ...]:
    """Return options that name their compiler; those of NVRTC, which is the usual one, stay as they are."""
    return (*([] if compiler == "nvrtc" else [f"{_MARK}{compiler}"]), *options)


def toolchain_of(options: Sequence[str]) -> Toolchain:
    """Return the compiler that options name, and the rest of them."""
    named = next((option[len(_MARK) :] for option in options if option.startswith(_MARK)), "nvrtc")
    compiler: CompilerName = "nvcc" if named == "nvcc" else "nvrtc"
    return Toolchain(compiler, tuple(option for option in options if not option.startswith(_MARK)))


def compilers() -> tuple[str, ...]:
    """Return the names of the compilers that a spec may name."""
    return get_args(CompilerName)


def is_prebuilt(source: Path) -> bool:
    """Return whether a source is machine code already."""
    return source.suffix in PREBUILT or ".so." in source.name
