"""Includes of a source that holds host code: which are the project's files, which the device has, which it has not."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from prism_bench.io.files import first_in

# What NVRTC and the emulator can include.
_FOR_DEVICES = re.compile(
    r"cuda_(fp|bf)\d+\.hp?p?$|mma\.h$|cooperative_groups|cuda_pipeline|cuda_awbarrier|math_constants\.h$|cuda/|nv/target|"
    r"cub/|thrust/|cute/|cutlass/|curand_kernel\.h$|curand_[a-z0-9]+\.h$|cuComplex\.h$|vector_types\.h$|sm_\d+_|"
    r"device_launch_parameters\.h$|tensor_cores/tensor_map\.cuh$"
)
# Headers of C++ that libcu++ has for devices, too.
_FOR_BOTH = ("limits", "type_traits", "utility")
# Headers of C with what device code uses of them: NVRTC has none, and libcu++ of CUDA 13.0 an empty <cfloat>.
C_HEADERS = Path(__file__).with_name("c_headers")
_OF_C = frozenset(path.name for path in C_HEADERS.iterdir())
_MOSTLY_OF_HOSTS = ("stdio.h", "cstdio", "stdlib.h", "cstdlib")  # what includes them mostly holds host code
# What both worlds take, or what means nothing without a host: no sign that a file holds host code.
_NEUTRAL = re.compile(r"(cuda(_runtime(_api)?)?|driver_types|assert|math|string)\.h$|c(assert|math|string)$")
# What hosts alone have: the headers of C++ and of systems, and those of libraries that only hosts call.
_OF_HOSTS = re.compile(
    r"[a-z_0-9]+$|(stdio|stdlib|std\w+|time|errno|signal|locale|setjmp|wchar|ctype|inttypes|limits|float|omp|mpi|unistd|"
    r"pthread|dlfcn|fcntl|malloc|getopt|dirent|sched|windows|[Ww]insock2?|io|conio|process|jni|Python|mex|gdrapi)\.h$|"
    r"(sys|arpa|net|netinet|linux|bits|x86intrin|immintrin|experimental|torch|ATen|c10|pybind11|nanobind|numpy|gtest|gmock|"
    r"benchmark|nvbench|boost|Eigen|absl|folly|glog|gflags|fmt|spdlog|nlohmann|json|opencv2?|catch2|doctest|GL|GLFW|EGL|"
    r"vulkan|nvtx3|hdf5|tbb|rapidjson|xla|tensorflow|jaxlib|onnxruntime|mscclpp|nvshmemx?|rmm|raft)[./]|"
    r"(cublas\w*|cufft\w*|cusolver\w*|cusparse\w*|cudnn\w*|cutensor\w*|curand|cufile|nccl\w*|nvml|cupti\w*|nvrtc|"
    r"nvJitLink|nvjpeg|npp\w*|nvToolsExt\w*|cuda_?[pP]rofiler\w*|cuda_gl_interop|cudaGL|"
    r"helper_(cuda|functions|string|timer|image)\w*)\.h$"
)
_DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_LAUNCH = re.compile(r"<<<|\bint\s+main\s*\(")
_READY = "__CUDACC_RTC__"  # a header that knows NVRTC takes care of itself


@dataclass(frozen=True)
class Include:
    """An include: its name, and whether it is in quotes."""

    name: str
    quoted: bool

    @property
    def is_for_devices(self) -> bool:
        """Whether a device's compiler can include it as it is."""
        return bool(_FOR_DEVICES.match(self.name))

    @property
    def twin(self) -> str | None:
        """The header of libcu++ that a device has in place of a standard one; None where there is none."""
        return f"cuda/std/{self.name}" if self.name in _FOR_BOTH else None

    @property
    def is_of_c(self) -> bool:
        """Whether this package has the header of C for NVRTC; the emulator has that of the host's compiler."""
        return self.name in _OF_C

    @property
    def is_neutral(self) -> bool:
        """Whether files for devices have it as well, so that it is no sign of host code."""
        return bool(_NEUTRAL.search(self.name)) or (self.is_of_c and self.name not in _MOSTLY_OF_HOSTS)

    @property
    def needs_a_host(self) -> bool:
        """Whether no device can include it, so that the file with it holds host code."""
        return not (self.is_for_devices or self.twin or self.is_neutral)

    @property
    def is_cut_unseen(self) -> bool:
        """Whether its name alone shows that a device goes without it, or has something in its place."""
        return bool(_OF_HOSTS.match(self.name) or self.twin or self.is_neutral)


def includes_in(text: str) -> Iterator[Include]:
    """Yield the includes of a text."""
    return (Include(match[2].strip(), match[1] == '"') for match in _DIRECTIVE.finditer(text))


@dataclass(frozen=True)
class ProjectFiles:
    """Files of a project: the source, and what it includes from `folders` below `root`, directly or not.

    Headers of packages for devices, those that know NVRTC, and what a catalogue shares (`shared`) are left to the
    compiler. Other headers outside of the project are the host's.
    """

    root: Path
    folders: tuple[Path, ...]
    shared: tuple[Path, ...] = ()

    def find(self, include: Include, folder: Path) -> Path | None:
        """Return the project's file that a file in `folder` includes; None where it is no file of the project."""
        beside = first_in((folder,), include.name) if include.quoted else None
        further = None if include.is_for_devices else first_in(self.folders, include.name)
        there = beside or further
        if there is None:
            return None
        found = there.resolve()
        is_own = found.is_file() and found.is_relative_to(self.root)
        return found if is_own and not any(found.is_relative_to(place) for place in self.shared) else None

    def is_left(self, include: Include, folder: Path) -> bool:
        """Return whether the compiler gets the include as it is.

        It does where there is no such file and no host is known to have one: its error names file and line.
        """
        if include.is_for_devices or self.find(include, folder) or first_in(self.shared, include.name):
            return True
        if first_in((folder, *self.folders), include.name):
            return include.name.endswith(".cuh")
        return not include.is_cut_unseen

    def reached(self, source: Path) -> list[tuple[Path, str]]:
        """Return the source and the project's files that it includes with their texts, those before it first."""
        found: dict[Path, str] = {}
        self._reach(source.resolve(), found, set())
        return list(found.items())

    def _reach(self, path: Path, found: dict[Path, str], seen: set[Path]) -> None:
        seen.add(path)
        text = path.read_text("utf-8", "replace")
        for include in includes_in(text):
            inner = self.find(include, path.parent)
            if inner and inner not in seen and _READY not in inner.read_text("utf-8", "replace"):
                self._reach(inner, found, seen)
        found[path] = text


@lru_cache(maxsize=256)  # the passes of a verification ask about the same few sources again and again
def need_a_host(files: ProjectFiles, texts: tuple[tuple[Path, str], ...]) -> bool:
    """Return whether any of the files has a launch, a main function, or an include that no device has."""
    return any(
        _LAUNCH.search(text)
        or any(one.needs_a_host and not files.is_left(one, path.parent) for one in includes_in(text))
        for path, text in texts
    )


def is_program(texts: Iterable[tuple[Path, str]]) -> bool:
    """Return whether a file launches or has a main function: then a function without `__device__` is the host's."""
    return any(_LAUNCH.search(text) for _, text in texts)


def project_root(source: Path) -> Path:
    """Return the folder of the repository that a source belongs to; without one, the folder above its own."""
    above = source.resolve().parents
    return next((folder for folder in above if (folder / ".git").exists()), above[min(1, len(above) - 1)])
