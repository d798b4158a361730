"""Checks of the doctor: CUDA, driver and GPUs, host, libraries, profilers, and what a user can do with them."""

import locale
import os
import platform
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from prism_bench.backends import open_backend
from prism_bench.compilation.compilers import include_folders
from prism_bench.emulator.build import find_compiler, sanitizer_library
from prism_bench.errors import BackendUnavailable, CacheUnavailable, PrismBenchError
from prism_bench.io.files import cache_folder, writable_cache
from prism_bench.io.installation import pip_install, source, strangers
from prism_bench.monitor.nvml import VISIBLE, DeviceLost, NvmlDevice, devices, opened, visible
from prism_bench.monitor.probe import HARMFUL, DeviceReading, Probe, family, reasons_in
from prism_bench.profilers.tools import FAILURES, TOOLS, ProfilerFailed, find
from prism_bench.spec.peer import LIBRARIES
from prism_bench.units import bytes_text, count_text, rate_text

# One finding of the doctor.

# Well; worth knowing; absent, and what needs it does not work; there and not working.
STATES = ("works", "note", "missing", "broken")


@dataclass(frozen=True)
class Check:
    """`name` of what was looked at, its `state`, what was `found`; where it is not well, the `cause` and the `cure`."""

    name: str
    state: str
    found: str
    cause: str | None = None
    cure: str | None = None


def works(name: str, finding: object) -> Check:
    """Return a check that passed."""
    return Check(name, "works", str(finding))


def note(name: str, finding: str, cause: str, cure: str) -> Check:
    """Return a check that passed, with a note that numbers may suffer."""
    return Check(name, "note", finding, cause, cure)


def missing(name: str, cause: str, cure: str) -> Check:
    """Return a check of something that is missing."""
    return Check(name, "missing", "not here", cause, cure)


def broken(name: str, finding: str, cause: str, cure: str) -> Check:
    """Return a check of something that exists and does not work."""
    return Check(name, "broken", finding, cause, cure)


# Checks of the driver and the GPUs, through NVML: whether they answer, and whether something disturbs times.

NODES = Path("/dev/nvidiactl")
# NVML by its release: 12.0, the oldest CUDA that is usable here, came with this driver.
_OLDEST_DRIVER = 525
_HOT = 80.0


def device_checks() -> Iterator[Check]:
    """Yield checks of NVML and the driver, then of every GPU that CUDA sees here."""
    try:
        with opened() as pynvml:
            yield works("NVML", "answers")
            version = pynvml.nvmlSystemGetDriverVersion()
            if int(version.split(".")[0]) < _OLDEST_DRIVER:
                yield broken("driver", version, f"CUDA 12 needs {_OLDEST_DRIVER} or newer", "upgrade the driver")
            else:
                yield works("driver", version)
            gpus = devices(pynvml)
            yield _seen(gpus)
            for gpu in visible(gpus):
                yield from _device(pynvml, gpu)
    except BackendUnavailable as error:
        yield _no_nvml(str(error))


def _no_nvml(reason: str) -> Check:
    """Return a fault where the kernel driver has made its device node, otherwise a missing GPU."""
    if NODES.exists():
        return broken(
            "NVML",
            reason,
            "a GPU driver is loaded and its library does not answer",
            "make libnvidia-ml.so.1 of the same driver visible here (containers: --gpus all), reload the "
            "driver after an upgrade",
        )
    return missing(
        "NVML",
        reason,
        "install an NVIDIA driver where there is a GPU; without one references, emulator, "
        "compile check and reports work",
    )


def _seen(gpus: list[NvmlDevice]) -> Check:
    names = ", ".join(f"{gpu.index}: {gpu.name}" for gpu in visible(gpus))
    if not gpus:
        return missing(
            "GPUs", "the driver lists none", "look at 'dmesg' for Xid errors, and at the container's devices"
        )
    if not names:
        return broken("GPUs", f"{len(gpus)}, none visible", f"{VISIBLE} hides them", f"unset {VISIBLE} or correct it")
    return works("GPUs", names)


def _device(pynvml: ModuleType, device: NvmlDevice) -> Iterator[Check]:
    """Yield checks of one GPU."""
    try:
        reading = Probe(pynvml, device, ours=family()).read(0.0)
    except DeviceLost as error:
        yield broken(
            f"GPU {device.index}",
            str(error),
            "the device fell off the bus or needs a reset",
            "'dmesg' names the Xid; reset the GPU or restart the machine",
        )
        return
    yield _persistence(pynvml, device)
    yield _mig(device, reading)
    yield _clocks(device, reading)
    yield _temperature(device, reading)
    yield _errors(device, reading)
    yield _neighbours(device, reading)
    yield _gpm(device, reading)


def _persistence(pynvml: ModuleType, device: NvmlDevice) -> Check:
    name = f"persistence mode of GPU {device.index}"
    try:
        on = pynvml.nvmlDeviceGetPersistenceMode(device.board)
    except pynvml.NVMLError as error:
        return note(name, f"unknown: {error}", "the device does not report it", "nothing to do")
    if on:
        return works(name, "on")
    return note(
        name,
        "off",
        "the driver unloads between processes, so that each first launch waits for it",
        "'nvidia-smi --persistence-mode=1' as root, or nvidia-persistenced",
    )


def _mig(device: NvmlDevice, reading: DeviceReading) -> Check:
    name = f"MIG of GPU {device.index}"
    if device.is_slice:
        return note(
            name,
            f"a slice: {device.name}",
            "clocks, power and energy are the whole GPU's",
            "compare slices only with equal slices",
        )
    on = reading.values.get("mig")
    return works(name, "off" if not on else "on") if on is not None else works(name, reading.missing["mig"])


def _clocks(device: NvmlDevice, reading: DeviceReading) -> Check:
    name, values = f"clocks of GPU {device.index}", reading.values
    clock, best = rate_text(values.get("sm_clock"), "Hz"), rate_text(values.get("max_sm_clock"), "Hz")
    reasons = reasons_in(values.get("clock_reasons"))
    harm = [word for word in reasons if word in HARMFUL]
    if harm:
        return broken(
            name,
            f"{clock} of {best}",
            f"held down: {', '.join(harm)}",
            "look at cooling and power supply; measurements taken now would be refused",
        )
    if "application clocks" in reasons:
        cure = "unless meant so, 'nvidia-smi --reset-gpu-clocks' and '--reset-applications-clocks' as root"
        text = f"{clock} of {best}, set by an administrator"
        return note(name, text, "application clocks or locked clocks are in force", cure)
    return works(name, f"{clock} of {best}, not locked: every sample carries its own clock")


def _temperature(device: NvmlDevice, reading: DeviceReading) -> Check:
    name, heat = f"temperature of GPU {device.index}", reading.values.get("temperature")
    if heat is None:
        return note(name, "unknown", reading.missing["temperature"], "nothing to do")
    if heat >= _HOT:
        return note(
            name, f"{heat:.0f} C", "near the point where heat holds the clock down", "let it cool, look at fans"
        )
    return works(name, f"{heat:.0f} C")


def _errors(device: NvmlDevice, reading: DeviceReading) -> Check:
    name, values = f"memory errors of GPU {device.index}", reading.values
    lost, failed = values.get("ecc_uncorrected"), values.get("remap_failed")
    if lost or failed:
        return broken(
            name,
            f"{lost or 0:.0f} uncorrected, row remapping {'failed' if failed else 'well'}",
            "the memory is faulty",
            "reset the GPU; if they come again, have it replaced",
        )
    if lost is None:
        return note(
            name, "unknown", reading.missing["ecc_uncorrected"], "nothing to do: this board has no ECC counters"
        )
    return works(name, "none uncorrected")


def _neighbours(device: NvmlDevice, reading: DeviceReading) -> Check:
    name = f"other processes on GPU {device.index}"
    if reading.processes is None:
        return note(name, "unknown", reading.missing["processes"], "make sure that nothing else runs there")
    others = [process for process in reading.processes if not process.ours]
    if not others:
        free = bytes_text(reading.values.get("memory_free"))
        return works(name, f"none; {free} free")
    text = ", ".join(f"{process} {bytes_text(process.memory)}" for process in others)
    return note(
        name,
        text,
        "they share the device; measurements during which one works are refused",
        "end them, or choose another GPU with CUDA_VISIBLE_DEVICES",
    )


def _gpm(device: NvmlDevice, reading: DeviceReading) -> Check:
    """Read GPM once: it has no mean yet, and reporting that shows that it answers."""
    name, reason = f"GPM of GPU {device.index}", reading.missing.get("sm_active")
    if reason is None or "second sample" in reason:
        return works(name, "SM, tensor and DRAM activity without ncu")
    return note(name, "not offered", reason, "Hopper and later have it; ncu reports the same elsewhere")


# CUDA as the catalogue uses it: CuPy, runtime, NVRTC, headers, and a kernel that is compiled and runs.

_CUPY = ("cupy-cuda13x", "cupy-cuda12x")
HEADERS = {
    "cuda_fp16.h": "nvidia-cuda-runtime",
    "crt/mma.h": "nvidia-cuda-crt (CUDA 12: nvidia-cuda-nvcc-cu12)",
    "cooperative_groups.h": "nvidia-cuda-runtime",
}


def cuda_checks() -> Iterator[Check]:
    """Yield what is installed, then whether it works."""
    yield _cupy()
    try:
        from prism_bench.compilation import nvrtc_version

        yield works("NVRTC", nvrtc_version())
    except (PrismBenchError, ImportError, OSError, RuntimeError) as error:
        yield missing("NVRTC", _first_line(error), f"{pip_install('compile')}, or cuda13 with a GPU")
    folders = [Path(folder) for folder in include_folders()]
    for header, package in HEADERS.items():
        where = next((folder for folder in folders if (folder / header).is_file()), None)
        if where:
            yield works(header, "found in a wheel" if "site-packages" in where.parts else "found in a toolkit")
        else:
            yield missing(header, "neither a wheel nor a toolkit has it", f"install {package}, or set CUDA_PATH")
    yield from _backend()


def _cupy() -> Check:
    builds = installed(*_CUPY)
    if not builds:
        return missing(
            "CuPy", "the package is not installed", f"{pip_install('cuda13')}, or cuda12 for an older driver"
        )
    if len(builds) > 1:
        return broken(
            "CuPy", ", ".join(builds), "two builds overwrite each other's files", "uninstall all, install one"
        )
    return works("CuPy", builds[0])


def installed(*packages: str) -> list[str]:
    """Return `name version` of each of the packages that is installed."""
    versions = []
    for package in packages:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return versions


def _backend() -> Iterator[Check]:
    """Yield checks that a context opens and that a kernel compiles and loads."""
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
        yield broken(
            "CUDA backend",
            _first_line(error),
            "CUDA opens and a kernel does not compile or load",
            "see the checks above; PRISM_BENCH_CACHE may hold what another version compiled",
        )
        return
    software = facts["software"]
    yield works("CUDA runtime", f"{software['runtime']}, driver for CUDA {software['driver_cuda']}")
    yield works("CUDA backend", f"compiles and loads on {facts['device']}, sm_{facts['compute_capability']}")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


# The host: Python, the emulator's compiler, git, and whether the machine is quiet.

_BUSY = 0.5  # of the cores


def host_checks() -> Iterator[Check]:
    """Yield checks from the interpreter to the load."""
    yield works("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield _package()
    yield from _compiler()
    yield (
        works("git", shutil.which("git"))
        if shutil.which("git")
        else missing("git", "not in PATH", "install git: records name the commit that they measured")
    )
    yield _cache()
    yield _load()


def _package() -> Check:
    """Check that no other project's package is in the place of this one: the index has one called `prism-bench`."""
    others = ", ".join(strangers())
    if others:
        cause = f"{others}: the same folder, prism_bench, so that its code may run in the place of this program's"
        names = " ".join(name.partition(" ")[0] for name in strangers())
        return broken("package", others, cause, f"pip uninstall {names}, then {pip_install()} --force-reinstall")
    return works("package", source().requirement())


def _compiler() -> Iterator[Check]:
    try:
        compiler = find_compiler()
    except BackendUnavailable as error:
        yield missing("compiler", str(error).split(";")[0], "install g++ (Debian, Ubuntu: apt install g++) or set CXX")
        return
    yield works("compiler", compiler.version)
    try:
        sanitizer_library()
        yield works("sanitizers", "the emulator finds bad accesses")
    except BackendUnavailable as error:
        yield missing("sanitizers", str(error), "install the compiler's sanitizers")


def _cache() -> Check:
    folder = cache_folder("doctor")
    try:
        return works("cache", writable_cache("doctor").parent)
    except CacheUnavailable as error:
        reason = error.__cause__.strerror if isinstance(error.__cause__, OSError) else None
        fix = "set PRISM_BENCH_CACHE to a folder that can be written"
        return broken("cache", str(folder.parent), reason or str(error), fix)


def _load() -> Check:
    """Check the load: launch costs and end-to-end times scatter where other programs use the CPU."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > _BUSY * cores:
        return note(
            "load",
            f"{load:.1f} on {count_text(cores, 'core')}",
            "other programs use the CPU; launch costs will scatter",
            "end them, or wait",
        )
    return works("load", f"{load:.1f} on {count_text(cores, 'core')}")


# Libraries other than CUDA: peers to compare with, asv, and what single commands need.

# Import name: package, what it is for, and the extra that installs it.
_WANTED = {
    "torch": ("torch", "the library peers that kernels are compared with", "peers"),
    "scipy": ("scipy", "references that call it, evaluated on the CPU", "scipy"),
    "matplotlib": ("matplotlib", "pictures of records and of fusion", "plots"),
    "asv": ("asv", "histories with 'asv run'", "asv"),
    "prometheus_client": ("prometheus-client", "'prism-bench monitor --serve'", "monitor"),
    "cupti": ("cupti-python", "launches counted and timed without ncu", "cupti"),
    "ncu_report": ("ncu-report", "ncu reports read without ncu", "ncu"),
}


def libraries_checks() -> Iterator[Check]:
    """Yield a check of each package; no package is imported, which could take seconds."""
    for module, (package, purpose, extra) in _WANTED.items():
        if find_spec(module) is None:
            yield missing(package, f"not installed; it is for {purpose}", pip_install(extra))
            continue
        version = (installed(package) or [package])[0].rpartition(" ")[2]
        if version.endswith("+cpu"):
            yield broken(package, version, "a build without CUDA: its peers cannot run", "install a CUDA build of it")
        else:
            yield works(package, version)
    for library in LIBRARIES.values():
        if library.is_strong and library.is_installed():
            yield works(library.distribution, library.installed_version() or "version unknown")
        elif library.is_strong:
            cause = "not installed; peers that call it have no time"
            yield note(library.distribution, "not here", cause, pip_install(library.extra))


# Profilers: which are here, and whether the driver lets them count.

PARAMETERS = Path("/proc/driver/nvidia/params")
STATUS = Path("/proc/self/status")
_CAP_SYS_ADMIN = 1 << 21


def profiling_checks() -> Iterator[Check]:
    """Yield checks of every tool, of the permission that ncu needs, and of the locale."""
    for name in TOOLS:
        yield _tool(name)
    if NODES.exists():
        yield _permission()
    yield _locale()


def _tool(name: str) -> Check:
    try:
        tool = find(name)
    except ProfilerFailed as error:
        return missing(name, error.failure.cause.rstrip("."), error.failure.cure.rstrip("."))
    if tool.version is None:
        return broken(name, tool.program, "it prints no version", "run it yourself: a library may be missing")
    return works(name, f"{tool.version}, {tool.program}")


def _permission() -> Check:
    restricted = _restricted()
    if restricted is None:
        return note("counters", "unknown", f"{PARAMETERS} does not say", "'prism-bench profile' will, when it is tried")
    if restricted and not _is_administrator():
        refused = next(failure for failure in FAILURES if failure.name == "permission")
        return broken("counters", "refused", refused.cause.rstrip("."), refused.cure.rstrip("."))
    return works("counters", "for administrators, and this process is one" if restricted else "open to all")


def _restricted() -> bool | None:
    try:
        lines = PARAMETERS.read_text().splitlines()
    except OSError:
        return None
    value = next((line.split(":")[1].strip() for line in lines if line.startswith("RmProfilingAdminOnly:")), None)
    return None if value is None else value != "0"


def _is_administrator() -> bool:
    """Return whether the driver takes this process for an administrator's: a container's root often is not."""
    try:
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("CapEff:"))
    except (OSError, StopIteration):
        return os.geteuid() == 0
    return bool(int(line.split()[1], 16) & _CAP_SYS_ADMIN)


def _locale() -> Check:
    """Check the locale: ncu writes numbers in it; we run it in C, your own call may not."""
    point = locale.localeconv()["decimal_point"]
    chosen = os.environ.get("LC_ALL") or os.environ.get("LC_NUMERIC") or os.environ.get("LANG") or "C"
    if point != "." or not chosen.startswith(("C", "POSIX", "en")):
        return note(
            "locale", chosen, "ncu writes 1.234 for a thousand there", "LC_ALL=C before ncu, where its CSV is kept"
        )
    return works("locale", chosen)


# What a user can do on this machine, as the checks have it, and what is needed for the rest.

_WELL = ("works", "note")


@dataclass(frozen=True)
class Ability:
    """Something that users do, `what`, and the names of the checks that have to pass for it."""

    what: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class AbilityAnswer:
    """Whether the machine allows `what`; where it does not, `lacks` is the check that fails and `cure` what helps."""

    what: str
    possible: bool
    lacks: str | None = None
    cure: str | None = None


ABILITIES = (
    Ability("read, compare and report records"),
    Ability("check kernels on the CPU emulator", ("compiler",)),
    Ability("compile kernels to machine code", ("NVRTC", "cuda_fp16.h", "crt/mma.h", "cooperative_groups.h")),
    Ability("run the asv suites", ("asv",)),
    Ability("compare commits", ("git",)),
    Ability("measure kernels on a GPU", ("CUDA backend",)),
    Ability("watch clocks, power and neighbours", ("NVML",)),
    Ability("time PyTorch peers", ("CUDA backend", "torch")),
    Ability("count with ncu", ("CUDA backend", "ncu")),
    Ability("trace with nsys", ("CUDA backend", "nsys")),
    Ability("run compute-sanitizer", ("CUDA backend", "compute-sanitizer")),
)


def answers(checks: Iterable[Check], abilities: Iterable[Ability] = ABILITIES) -> list[AbilityAnswer]:
    """Return an answer for each ability; a check that was not made counts as failed."""
    by_name = {check.name: check for check in checks}
    passed = {name for name, check in by_name.items() if check.state in _WELL}
    results: list[AbilityAnswer] = []
    for ability in abilities:
        lacking = next((name for name in ability.needs if name not in passed), None)
        cure = by_name[lacking].cure if lacking in by_name else None
        results.append(AbilityAnswer(ability.what, lacking is None, lacking, cure))
    return results
