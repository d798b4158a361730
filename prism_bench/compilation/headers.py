"""CUDA's headers: in wheels next to Python, or in a toolkit."""

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_WHEEL_FOLDERS = ("cu13/include", "cu13/include/cccl", "cuda_runtime/include", "cuda_nvcc/include", "cuda_cccl/include")


@cache
def include_folders() -> tuple[str, ...]:
    """Folders to pass with -I, wheels first; a toolkit is used where the wheels lack `cuda_fp16.h` or `crt/mma.h`."""
    folders = [folder for folder in _wheel_folders() if folder.is_dir()]
    for needed in ("cuda_fp16.h", "crt/mma.h"):
        if not any((folder / needed).is_file() for folder in folders):
            folders += [folder for folder in _toolkit_folders() if (folder / needed).is_file()][:1]
    cccl = [folder / "cccl" for folder in folders if (folder / "cccl").is_dir()]
    return tuple(dict.fromkeys(str(folder) for folder in [*folders, *cccl, *_cupy_folders()]))


def _wheel_folders() -> list[Path]:
    spec = find_spec("nvidia")
    roots = [Path(root) for root in (spec.submodule_search_locations or ())] if spec else []
    return [root / folder for root in roots for folder in _WHEEL_FOLDERS]


def _toolkit_folders() -> list[Path]:
    named = [os.environ[name] for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    return [Path(root) / "include" for root in [*named, "/usr/local/cuda"]]


def _cupy_folders() -> list[Path]:
    """CuPy ships the part of CCCL that `cooperative_groups.h` needs."""
    spec = find_spec("cupy")
    if not spec or not spec.submodule_search_locations:
        return []
    root = Path(spec.submodule_search_locations[0]) / "_core" / "include" / "cupy" / "_cccl"
    return [root / name for name in ("libcudacxx", "cub", "thrust") if (root / name).is_dir()]
