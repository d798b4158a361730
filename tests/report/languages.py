"""A record of an operation in several languages, as a run on an H200 would leave it: one form slow, one skipped."""

from dataclasses import replace
from pathlib import Path

from prism_bench.catalogue import Catalogue, discover
from tests.report.synthetic import gpu_record, measurement

KERNELS = Path("kernels")
TIMES = {None: 192e-6, "triton": 200e-6, "tile": 260e-6, "numba": 912e-6, "cute": None}
COMPILERS = {None: "NVRTC 13.0", "triton": "Triton 3.6.0", "tile": "cuTile 1.7.0", "numba": "Numba-CUDA 0.30.4"}


def operation_catalogue(folder: Path) -> Catalogue:
    """The catalogue with vector_add alone, which is written in several languages."""
    (folder / "basic").mkdir(parents=True)
    for file in (KERNELS / "basic").glob("vector_add.*"):
        (folder / "basic" / file.name).write_bytes(file.read_bytes())
    (folder / "include").symlink_to((KERNELS / "include").resolve())
    return discover(folder)


def languages_record():
    """The synthetic run, with vector_add in the other languages at S1."""
    record = gpu_record()
    own = next(case for case in record.cases if (case.kernel, case.label) == ("vector_add", "S1"))
    others = tuple(_form(own, variant, seconds) for variant, seconds in TIMES.items())
    kept = tuple(case for case in record.cases if case is not own)
    return replace(record, cases=(*kept, *others))


def _form(own, variant, seconds):
    name = own.name.replace("vector_add[", f"vector_add:{variant}[") if variant else own.name
    if seconds is None:
        reason = "CuTe DSL is not installed (pip install 'prism-gpu-bench[cute]==0.2.0')"
        return replace(own, name=name, variant=variant, status="skipped", reason=reason, measurements=(), code={})
    code = {
        **own.code, "language": variant or "cuda", "compiler": COMPILERS[variant], "sass": f"{variant}",
        "code_bytes": 1024, "compile_seconds": 0.21,
    }  # fmt: skip
    times = (measurement("cold_time", seconds), measurement("hot_time", 0.9 * seconds))
    return replace(own, name=name, variant=variant, code=code, measurements=times)
