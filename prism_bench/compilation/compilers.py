"""Compilers of CUDA C++: NVRTC by either binding, nvcc, and CUDA's headers."""

import ctypes
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from prism_bench.compilation.cubin import lowered_names
from prism_bench.errors import BackendUnavailable, CompilationFailed, UsageError
from prism_bench.io.installation import pip_install
from prism_bench.io.workers import run_program

# A toolchain in a folder, which replaces the installed NVRTC, nvcc and headers: packages of wheels, or a toolkit.

TOOLCHAIN = "PRISM_BENCH_TOOLCHAIN"
NVRTC_OPTIONS = "PRISM_BENCH_NVRTC_OPTIONS"  # added to those of every source


def toolchain_folder() -> Path | None:
    """Return the folder of the toolchain that this process compiles with; None for the installed compilers."""
    folder = os.environ.get(TOOLCHAIN)
    return Path(folder) if folder else None


def added_options() -> tuple[str, ...]:
    """Return the options that PRISM_BENCH_NVRTC_OPTIONS adds to those of every source."""
    text = os.environ.get(NVRTC_OPTIONS, "")
    try:
        options = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{NVRTC_OPTIONS}: '{text}' is no list of options: {error}") from None
    if refusal := architecture_refusal(options):
        raise UsageError(f"{NVRTC_OPTIONS}: {refusal}")
    return options


def architecture_refusal(options: Iterable[str]) -> str | None:
    """Return why options are refused that name an architecture, which --arch or the device does; None for others."""
    named = next((option for option in options if option.startswith(("-arch", "--gpu-architecture"))), None)
    return f"leave out {named}: --arch, or the device, names the architecture" if named else None


def nvrtc_libraries(folder: Path) -> list[Path]:
    """Return the libraries of NVRTC in the folder of a toolchain, the best first."""
    return [path for part in ("nvidia/*/lib", "lib64", "lib") for path in sorted(folder.glob(f"{part}/libnvrtc.so*"))]


# NVRTC, by CuPy's bindings (the GPU extras) or `cuda.bindings` (the `compile` extra).

# Machine code or PTX (None if the compiler refused), mangled names by entry, and the compiler's log.
Compilation = tuple[bytes | None, dict[str, str], str]
_EMPTY = 'extern "C" __global__ void empty() {}\n'


def missing() -> str:
    """Return an error text: NVRTC is missing, how to install it, and the features that work without it."""
    return (
        f"NVRTC is not installed; {pip_install('compile')} (no GPU needed), or cuda13. "
        "References, stored records and reports work without it"
    )


class Bindings:
    """NVRTC by one of its bindings."""

    def version(self) -> tuple[int, ...]:
        """Return the version of NVRTC."""
        raise NotImplementedError

    def architectures(self) -> tuple[int, ...]:
        """Return the compute capabilities for which NVRTC makes machine code, such as 90."""
        raise NotImplementedError

    def compile(self, text: str, name: str, entries: Sequence[str], flags: Sequence[str]) -> Compilation:
        """Compile to machine code: (cubin, mangled names, log); the cubin is None if the compiler refused."""
        return self._compile(text, name, entries, flags, "CUBIN")

    def ptx(self, text: str, name: str, entries: Sequence[str], flags: Sequence[str]) -> Compilation:
        """Compile to PTX: as `compile`, with PTX as text in bytes in the cubin's place."""
        return self._compile(text, name, entries, flags, "PTX")

    def _compile(self, text: str, name: str, entries: Sequence[str], flags: Sequence[str], result: str) -> Compilation:
        raise NotImplementedError


@cache
def load() -> Bindings:
    """Return the bindings that are installed, or those of the toolchain; raise BackendUnavailable without any."""
    if folder := toolchain_folder():
        return _LibraryBindings(folder)
    for kind in (_CupyBindings, _CudaBindings):
        try:
            return kind()
        except (ImportError, OSError, RuntimeError):
            continue
    raise BackendUnavailable(missing())


def options_refusal(architectures: Iterable[str]) -> str | None:
    """Return why NVRTC compiles nothing with the added options, which is no defect of a kernel; None if it compiles.

    An empty kernel is compiled, for the first of the architectures that NVRTC knows.
    """
    options = added_options()
    try:
        nvrtc = load()
    except BackendUnavailable:  # what needs NVRTC reports that
        return None
    known = [name for name in architectures if int(name.rstrip("af")) in nvrtc.architectures()]
    if not options or not known:
        return None
    code, _, log = nvrtc.compile(_EMPTY, "empty.cu", (), (f"-arch=sm_{known[0]}", *options))
    if code is not None or _NO_HEADER.search(log):  # the header may be in the folder of a kernel
        return None
    lines = [line for line in log.strip("\0\n ").splitlines() if "warning" not in line]
    return f"NVRTC compiles nothing with {shlex.join(options)}: {(lines or ['it gave no reason'])[0]}"


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
            output: str | bytes = getattr(nvrtc, f"get{result}")(program)
            compiled = output.encode() if isinstance(output, str) else bytes(output)
            # CuPy drops the last byte as the end of a text: drivers accept such a cubin, nvdisasm does not.
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
        (architectures,) = self._checked(self._nvrtc.nvrtcGetSupportedArchs())
        return tuple(architectures)

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
            size, fill = getattr(nvrtc, f"nvrtcGet{result}Size"), getattr(nvrtc, f"nvrtcGet{result}")
            return self._text(size, fill, program, 1 if result == "PTX" else 0), lowered, log
        finally:
            nvrtc.nvrtcDestroyProgram(program)

    def _text(self, size_of: Callable[..., Any], fill: Callable[..., Any], program: Any, trailing: int = 1) -> bytes:
        (size,) = self._checked(size_of(program))
        buffer = b" " * (size + 1)  # NVRTC writes into it; a single byte would be Python's shared b" "
        self._checked(fill(program, buffer))
        return buffer[: size - trailing]

    def _checked(self, result: Iterable[Any]) -> list[Any]:
        status, *values = result
        if status != self._nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise RuntimeError(str(status))
        return values


class _LibraryBindings(Bindings):
    """NVRTC of a toolchain, by its own C functions: no package for Python binds two releases at a time."""

    def __init__(self, folder: Path) -> None:
        libraries = nvrtc_libraries(folder)
        if not libraries:
            raise BackendUnavailable(f"{folder} has no libnvrtc.so: name a CUDA toolkit, or a folder of its wheels")
        try:
            # NVRTC opens this one by its name, which the loader finds only in some releases unless it is loaded.
            for builtins in sorted(libraries[0].parent.glob("libnvrtc-builtins.so*")):
                ctypes.CDLL(str(builtins))
            self._nvrtc: Any = ctypes.CDLL(str(libraries[0]))
        except OSError as error:
            raise BackendUnavailable(f"{libraries[0]} cannot be loaded: {error}") from None

    def version(self) -> tuple[int, ...]:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("Version", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def architectures(self) -> tuple[int, ...]:
        count = ctypes.c_int()
        self._call("GetNumSupportedArchs", ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self._call("GetSupportedArchs", numbers)
        return tuple(numbers)

    def _compile(self, text: str, name: str, entries: Sequence[str], flags: Sequence[str], result: str) -> Compilation:
        program = ctypes.c_void_p()
        self._call("CreateProgram", ctypes.byref(program), text.encode(), name.encode(), 0, None, None)
        try:
            for entry in entries:
                self._call("AddNameExpression", program, entry.encode())
            options = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
            status = self._nvrtc.nvrtcCompileProgram(program, len(flags), options)
            log = self._bytes("ProgramLog", program)[:-1].decode()
            if status:
                return None, {}, log
            lowered: dict[str, str] = {}
            for entry in entries:
                symbol = ctypes.c_char_p()
                self._call("GetLoweredName", program, entry.encode(), ctypes.byref(symbol))
                lowered[entry] = (symbol.value or b"").decode()
            code = self._bytes(result, program)
            return code[:-1] if result == "PTX" else code, lowered, log
        finally:
            self._call("DestroyProgram", ctypes.byref(program))

    def _bytes(self, what: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"Get{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(f"Get{what}", program, buffer)
        return buffer.raw

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._nvrtc, f"nvrtc{function}")(*arguments)
        if status:
            raise RuntimeError(f"nvrtc{function} ended with status {status}")


# nvcc: only the device side of a source (`-cubin`), which may contain host code.

_SECONDS = 600
_VERSION = re.compile(r"release [\d.]+, V([\d.]+)")


@cache
def nvcc() -> str:
    """Return the program, of the toolchain where one is named; raise BackendUnavailable without it."""
    if folder := toolchain_folder():
        programs = [*folder.glob("bin/nvcc"), *folder.glob("nvidia/*/bin/nvcc")]
        if not programs:
            raise BackendUnavailable(f"the toolchain {folder} has no nvcc")
        return str(programs[0])
    named = [os.environ[name] for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    folders = os.pathsep.join(f"{root}/bin" for root in [*named, "/usr/local/cuda"])
    program = shutil.which("nvcc") or shutil.which("nvcc", path=folders)
    if program is None:
        raise BackendUnavailable(
            "nvcc is neither in PATH nor in CUDA_HOME or /usr/local/cuda: install the CUDA toolkit, or leave "
            'compiler="nvcc" out of the spec, and NVRTC compiles it'
        )
    return program


@cache
def nvcc_version() -> str:
    """Return nvcc's version, `13.0.88`; raise BackendUnavailable without nvcc."""
    text = subprocess.run([nvcc(), "--version"], capture_output=True, text=True, check=False).stdout
    version = _VERSION.search(text)
    return version[1] if version else text.strip()[-60:]


def compile_by_nvcc(source: Path, entries: Sequence[str], flags: Sequence[str]) -> Compilation:
    """Return machine code, symbols by entry and nvcc's log; the code is None if nvcc refused.

    Instances of templates are named in a file that includes the source, so that nvcc instantiates them.
    """
    instances = [entry for entry in entries if "<" in entry]
    with tempfile.TemporaryDirectory(prefix="prism-nvcc-") as folder:
        unit, cubin = source, Path(folder) / "out.cubin"
        if instances:
            unit = Path(folder) / f"{source.stem}.cu"
            unit.write_text(_with_instances(source, instances))
        command = [nvcc(), "-cubin", *flags, "-Xptxas", "-v", "-o", str(cubin), str(unit)]
        try:
            done = run_program(command, timeout=_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise CompilationFailed(f"{source}: nvcc took more than {_SECONDS} s and was stopped") from error
        log = f"{done.stdout}{done.stderr}"
        if done.returncode or not cubin.is_file():
            return None, {}, log
        code = cubin.read_bytes()
    return code, lowered_names(code, entries, str(source)), log


def _with_instances(source: Path, instances: Sequence[str]) -> str:
    """Return a translation unit whose host code names the instances."""
    quoted = str(source.resolve()).replace("\\", "\\\\").replace('"', '\\"')
    named = "".join(f"    (const void*)(&{instance}),\n" for instance in instances)
    array = "const void* const prism_bench_entries[]"
    return f'#include "{quoted}"\nextern {array};\n{array} = {{\n{named}}};\n'


# CUDA's headers: in wheels next to Python, or in a toolkit.

_WHEEL_FOLDERS = ("cu13/include", "cu13/include/cccl", "cuda_runtime/include", "cuda_nvcc/include", "cuda_cccl/include")


@cache
def include_folders() -> tuple[str, ...]:
    """Return folders to pass with -I: of wheels, and of a toolkit if the wheels lack `cuda_fp16.h` or `crt/mma.h`.

    Those of a toolchain are all in its folder.
    """
    chosen = toolchain_folder()
    roots = [chosen / "nvidia"] if chosen else _package_folders("nvidia")
    wheels = [root / folder for root in roots for folder in _WHEEL_FOLDERS]
    folders = [folder for folder in wheels if folder.is_dir()]
    if chosen:
        more = [chosen / folder for folder in ("include", "include/cccl") if (chosen / folder).is_dir()]
        return tuple(map(str, [*folders, *more]))
    named = [os.environ[name] for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    toolkits = [Path(root) / "include" for root in [*named, "/usr/local/cuda"]]
    for needed in ("cuda_fp16.h", "crt/mma.h"):
        if not any((folder / needed).is_file() for folder in folders):
            folders += [folder for folder in toolkits if (folder / needed).is_file()][:1]
    cccl = [folder / "cccl" for folder in folders if (folder / "cccl").is_dir()]
    for root in _package_folders("cupy")[:1]:  # CuPy ships the part of CCCL that `cooperative_groups.h` needs
        parts = [root / "_core/include/cupy/_cccl" / name for name in ("libcudacxx", "cub", "thrust")]
        cccl += [folder for folder in parts if folder.is_dir()]
    return tuple(dict.fromkeys(map(str, [*folders, *cccl])))


# Headers that NVRTC's log does not find: what they are of, how to get them, and whether a toolkit has them for nvcc.
_NO_HEADER = re.compile(r'(?:cannot|could not) open source file "([^"]+)"')
_CURAND = "pip install nvidia-curand"
_CUTLASS = 'clone it and name its folder in the spec, options=("-I.../cutlass/include",)'
_OWNERS = (
    (re.compile(r"(cub|thrust|cuda|nv)/"), "CCCL", "", True),
    (
        re.compile(r"crt/|(mma|cuda_\w+|cooperative_groups\w*|cuComplex|math_constants)\.h"),
        "the CUDA runtime",
        "",
        True,
    ),
    (re.compile(r"curand\w*\.h$"), "cuRAND", _CURAND, True),
    (re.compile(r"(cutlass|cute)/"), "CUTLASS", _CUTLASS, False),
)


def header_advice(log: str) -> str:
    """Return one line on a header of NVIDIA's that NVRTC did not find: what has it; empty without such a header."""
    name = match[1] if (match := _NO_HEADER.search(log)) else ""
    for pattern, owner, cure, is_of_toolkit in _OWNERS:
        if pattern.match(name):
            advice = f"{name} is a header of {owner}: {cure or pip_install('compile')}"
            return f'{advice}; or compiler="nvcc" in the spec: {nvcc()}' if is_of_toolkit and has_nvcc() else advice
    return ""


def has_nvcc() -> bool:
    """Return whether nvcc is found."""
    try:
        return bool(nvcc())
    except BackendUnavailable:
        return False


def _package_folders(package: str) -> list[Path]:
    spec = find_spec(package)
    return [Path(root) for root in (spec.submodule_search_locations or ())] if spec else []
