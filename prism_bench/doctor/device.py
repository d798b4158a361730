"""Checks of the driver and the GPUs, through NVML: whether they answer, and whether something disturbs times."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from prism_bench.doctor.check import Check, broken, missing, note, works
from prism_bench.errors import BackendUnavailable
from prism_bench.monitor.devices import VISIBLE, NvmlDevice, devices, visible
from prism_bench.monitor.nvml import DeviceLost, opened
from prism_bench.monitor.probe import Probe
from prism_bench.monitor.processes import family
from prism_bench.monitor.quantities import HARMFUL, reasons_in
from prism_bench.monitor.reading import DeviceReading
from prism_bench.units import bytes_text, rate_text

NODES = Path("/dev/nvidiactl")
# NVML by its release: 12.0, the oldest CUDA that is usable here, came with this driver.
OLDEST_DRIVER = 525
_HOT = 80.0


def checks() -> Iterator[Check]:
    """NVML and the driver first; then every GPU that CUDA sees here."""
    try:
        with opened() as pynvml:
            yield works("NVML", "answers")
            yield _driver(pynvml.nvmlSystemGetDriverVersion())
            found = devices(pynvml)
            yield _seen(found)
            for one in visible(found):
                yield from _device(pynvml, one)
    except BackendUnavailable as error:
        yield _no_nvml(str(error))


def _no_nvml(said: str) -> Check:
    """Where the kernel driver has made its device node, a missing library or a refusal is a fault, else just no GPU."""
    if NODES.exists():
        return broken("NVML", said, "a GPU driver is loaded and its library does not answer",
                      "make libnvidia-ml.so.1 of the same driver visible here (containers: --gpus all), reload the "
                      "driver after an upgrade")  # fmt: skip
    return missing("NVML", said, "install an NVIDIA driver where there is a GPU; without one references, emulator, "
                   "compile check and reports work")  # fmt: skip


def _driver(version: str) -> Check:
    major = int(version.split(".")[0])
    if major < OLDEST_DRIVER:
        return broken("driver", version, f"CUDA 12 needs {OLDEST_DRIVER} or newer", "upgrade the driver")
    return works("driver", version)


def _seen(found: list[NvmlDevice]) -> Check:
    names = ", ".join(f"{one.index}: {one.name}" for one in visible(found))
    if not found:
        return missing(
            "GPUs", "the driver lists none", "look at 'dmesg' for Xid errors, and at the container's devices"
        )
    if not names:
        return broken("GPUs", f"{len(found)}, none visible", f"{VISIBLE} hides them", f"unset {VISIBLE} or correct it")
    return works("GPUs", names)


def _device(pynvml: ModuleType, device: NvmlDevice) -> Iterator[Check]:
    """Yield checks of one GPU."""
    try:
        reading = Probe(pynvml, device, ours=family()).read(0.0)
    except DeviceLost as error:
        yield broken(f"GPU {device.index}", str(error), "the device fell off the bus or needs a reset",
                     "'dmesg' names the Xid; reset the GPU or restart the machine")  # fmt: skip
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
    return note(name, "off", "the driver unloads between processes, so that each first launch waits for it",
                "'nvidia-smi --persistence-mode=1' as root, or nvidia-persistenced")  # fmt: skip


def _mig(device: NvmlDevice, reading: DeviceReading) -> Check:
    name = f"MIG of GPU {device.index}"
    if device.is_slice:
        return note(name, f"a slice: {device.name}", "clocks, power and energy are the whole GPU's",
                    "compare slices only with equal slices")  # fmt: skip
    on = reading.values.get("mig")
    return works(name, "off" if not on else "on") if on is not None else works(name, reading.missing["mig"])


def _clocks(device: NvmlDevice, reading: DeviceReading) -> Check:
    name, values = f"clocks of GPU {device.index}", reading.values
    clock, best = rate_text(values.get("sm_clock"), "Hz"), rate_text(values.get("max_sm_clock"), "Hz")
    reasons = reasons_in(values.get("clock_reasons"))
    harm = [word for word in reasons if word in HARMFUL]
    if harm:
        return broken(name, f"{clock} of {best}", f"held down: {', '.join(harm)}",
                      "look at cooling and power supply; measurements taken now would be refused")  # fmt: skip
    if "application clocks" in reasons:
        cure = "unless meant so, 'nvidia-smi --reset-gpu-clocks' and '--reset-applications-clocks' as root"
        found = f"{clock} of {best}, set by an administrator"
        return note(name, found, "application clocks or locked clocks are in force", cure)
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
        return broken(name, f"{lost or 0:.0f} uncorrected, row remapping {'failed' if failed else 'well'}",
                      "the memory is faulty", "reset the GPU; if they come again, have it replaced")  # fmt: skip
    if lost is None:
        return note(
            name, "unknown", reading.missing["ecc_uncorrected"], "nothing to do: this board has no ECC counters"
        )
    return works(name, "none uncorrected")


def _neighbours(device: NvmlDevice, reading: DeviceReading) -> Check:
    name = f"other processes on GPU {device.index}"
    if reading.processes is None:
        return note(name, "unknown", reading.missing["processes"], "make sure that nothing else runs there")
    others = [one for one in reading.processes if not one.ours]
    if not others:
        free = bytes_text(reading.values.get("memory_free"))
        return works(name, f"none; {free} free")
    words = ", ".join(f"{one} {bytes_text(one.memory)}" for one in others)
    return note(name, words, "they share the device; measurements during which one works are refused",
                "end them, or choose another GPU with CUDA_VISIBLE_DEVICES")  # fmt: skip


def _gpm(device: NvmlDevice, reading: DeviceReading) -> Check:
    """Read GPM once: it has no mean yet, and reporting that shows that it answers."""
    name, reason = f"GPM of GPU {device.index}", reading.missing.get("sm_active")
    if reason is None or "second sample" in reason:
        return works(name, "SM, tensor and DRAM activity without ncu")
    return note(name, "not offered", reason, "Hopper and later have it; ncu reports the same elsewhere")
