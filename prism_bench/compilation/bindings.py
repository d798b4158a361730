"""The two ways to NVRTC: CuPy's bindings (the GPU extras) or `cuda.bindings` (the `compile` extra)."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from prism_bench.errors import BackendUnavailable
from prism_bench.io.installation import pip_install

# Machine code or PTX (None if the compiler refused), mangled names by entry, and the compiler's log.
Compilation = tuple[bytes | None, dict[str, str], str]


def missing() -> str:
    """Return that NVRTC is missing, what installs it, and what works without it."""
    return (
        f"NVRTC is not installed; {pip_install('compile')} (no GPU needed), or cuda13. "
        "References, stored records and reports work without it"
    )


class Bindings:
    """What both ways to NVRTC offer."""

    def version(self) -> tuple[int, ...]:
        """Return the version of NVRTC."""
        raise NotImplementedError

    def architectures(self) -> tuple[int, ...]:
        """Return the compute capabilities that it makes machine code for, such as 90."""
        raise NotImplementedError

    def compile(self, text: str, name: str, entries: Sequence[str], flags: Sequence[str]) -> Compilation:
        """Compile to machine code: (cubin, mangled names, log); the cubin is None where the compiler refused."""
        return self._compile(text, name, entries, flags, "CUBIN")

    def ptx(self, text: str, name: str, entries: Sequence[str], flags: Sequence[str]) -> Compilation:
        """Return the same with PTX, as text in bytes, in the cubin's place."""
        return self._compile(text, name, entries, flags, "PTX")

    def _compile(self, text: str, name: str, entries: Sequence[str], flags: Sequence[str], result: str) -> Compilation:
        raise NotImplementedError


@cache
def load() -> Bindings:
    """Return an object with `version()`, `compile(text, name, entries, flags)` and `ptx` of the same arguments.

    BackendUnavailable where there is none.
    """
    for kind in (_CupyBindings, _CudaBindings):
        try:
            return kind()
        except (ImportError, OSError, RuntimeError):
            continue
    raise BackendUnavailable(missing())


class _CupyBindings(Bindings):
    def __init__(self) -> None:
        from cupy.cuda import nvrtc

        self._nvrtc = nvrtc
        self.version()

    def version(self) -> tuple[int, ...]:
        return tuple(self._nvrtc.getVersion())

    def architectures(self) -> tuple[int, ...]:
        return tuple(self._nvrtc.getSupportedArchs())

    def _compile(self, text: str, name: str, entries: Sequence[str], flags: Sequence[str], result: str) -> Compilation:
        nvrtc = self._nvrtc
        program = nvrtc.createProgram(text, name, [], [])
        try:
            for entry in entries:
                nvrtc.addNameExpression(program, entry)
            try:
                nvrtc.compileProgram(program, list(flags))
            except nvrtc.NVRTCError:
                return None, {}, nvrtc.getProgramLog(program)
            lowered = {entry: nvrtc.getLoweredName(program, entry) for entry in entries}
            found: str | bytes = getattr(nvrtc, f"get{result}")(program)
            compiled = found.encode() if isinstance(found, str) else bytes(found)
            # CuPy takes the last byte for a text's end: drivers do not mind that it is gone, nvdisasm does.
            return compiled + b"\0" * (result == "CUBIN"), lowered, nvrtc.getProgramLog(program)
        finally:
            nvrtc.destroyProgram(program)


class _CudaBindings(Bindings):
    def __init__(self) -> None:
        from cuda.bindings import nvrtc  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module without stubs

        self._nvrtc = nvrtc
        self.version()

    def version(self) -> tuple[int, ...]:
        return tuple(self._checked(self._nvrtc.nvrtcVersion()))

    def architectures(self) -> tuple[int, ...]:
        (found,) = self._checked(self._nvrtc.nvrtcGetSupportedArchs())
        return tuple(found)

    def _compile(self, text: str, name: str, entries: Sequence[str], flags: Sequence[str], result: str) -> Compilation:
        nvrtc = self._nvrtc
        (program,) = self._checked(nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], []))
        try:
            for entry in entries:
                self._checked(nvrtc.nvrtcAddNameExpression(program, entry.encode()))
            (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
            log = self._text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode()
            if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
                return None, {}, log
            lowered = {e: self._checked(nvrtc.nvrtcGetLoweredName(program, e.encode()))[0].decode() for e in entries}
            size, fill = (getattr(nvrtc, f"nvrtcGet{result}{what}") for what in ("Size", ""))
            return self._text(size, fill, program, 1 if result == "PTX" else 0), lowered, log
        finally:
            nvrtc.nvrtcDestroyProgram(program)

    def _text(self, size_of: Callable[..., Any], fill: Callable[..., Any], program: Any, trailing: int = 1) -> bytes:
        (size,) = self._checked(size_of(program))
        buffer = b" " * (size + 1)  # written to: a single byte would be Python's own one and only b" "
        self._checked(fill(program, buffer))
        return buffer[: size - trailing]

    def _checked(self, result: Iterable[Any]) -> list[Any]:
        status, *values = result
        if status != self._nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise RuntimeError(str(status))
        return values
