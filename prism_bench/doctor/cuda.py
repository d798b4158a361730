"""CUDA as the catalogue uses it: CuPy, runtime, NVRTC, headers, and a kernel that is compiled and runs."""

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from prism_bench.backends import open_backend
from prism_bench.compilation.headers import include_folders
from prism_bench.doctor.check import Check, broken, missing, works
from prism_bench.doctor.device import NODES
from prism_bench.errors import BackendUnavailable, PrismBenchError
from prism_bench.io.installation import pip_install

_CUPY = ("cupy-cuda13x", "cupy-cuda12x")
HEADERS = {
    "cuda_fp16.h": "nvidia-cuda-runtime",
    "crt/mma.h": "nvidia-cuda-crt (CUDA 12: nvidia-cuda-nvcc-cu12)",
    "cooperative_groups.h": "nvidia-cuda-runtime",
}


def checks() -> Iterator[Check]:
    """Yield what is installed, then whether it works."""
    yield _cupy()
    yield _nvrtc()
    yield from _headers()
    yield from _backend()


def _cupy() -> Check:
    found = installed(*_CUPY)
    if not found:
        return missing(
            "CuPy", "the package is not installed", f"{pip_install('cuda13')}, or cuda12 for an older driver"
        )
    if len(found) > 1:
        return broken("CuPy", ", ".join(found), "two builds overwrite each other's files", "uninstall all, install one")
    return works("CuPy", found[0])


def installed(*packages: str) -> list[str]:
    """`name version` of those of the packages that are installed."""
    found = []
    for package in packages:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return found


def _nvrtc() -> Check:
    try:
        from prism_bench.compilation import nvrtc_version

        return works("NVRTC", nvrtc_version())
    except (PrismBenchError, ImportError, OSError, RuntimeError) as error:
        return missing("NVRTC", _first_line(error), f"{pip_install('compile')}, or cuda13 with a GPU")


def _headers() -> Iterator[Check]:
    folders = [Path(folder) for folder in include_folders()]
    for header, package in HEADERS.items():
        where = next((folder for folder in folders if (folder / header).is_file()), None)
        if where:
            yield works(header, "found in a wheel" if "site-packages" in where.parts else "found in a toolkit")
        else:
            yield missing(header, "neither a wheel nor a toolkit has it", f"install {package}, or set CUDA_PATH")


def _backend() -> Iterator[Check]:
    """Yield the whole road at once: context, compile, load, allocate."""
    try:
        facts = open_backend("cuda").facts()
    except BackendUnavailable as error:
        if NODES.exists():
            yield broken(
                "CUDA backend", _first_line(error), "a driver is loaded and CUDA does not open", "see the checks above"
            )
        else:
            yield missing("CUDA backend", _first_line(error), "a GPU with a driver of CUDA 12 or newer, and CuPy")
        return
    except Exception as error:  # a broken installation raises anything
        yield broken("CUDA backend", _first_line(error), "CUDA opens and a kernel does not compile or load",
                     "see the checks above; PRISM_BENCH_CACHE may hold what another version compiled")  # fmt: skip
        return
    software = facts["software"]
    yield works("CUDA runtime", f"{software['runtime']}, driver for CUDA {software['driver_cuda']}")
    yield works("CUDA backend", f"compiles and loads on {facts['device']}, sm_{facts['compute_capability']}")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
