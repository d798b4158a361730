"""The machine, the software and the protocol of a record as pairs of words."""

from prism_bench.analysis.conditions import conditions, words
from prism_bench.record.run_record import RunRecord
from prism_bench.spec.metric import STAND_INS
from prism_bench.units import bytes_text, rate_text

_WORDS = {
    "sm_count": "multiprocessors", "l2_bytes": "L2 cache", "memory_bytes": "memory", "uuid": "UUID", "cpu": "CPU",
    "compute_capability": "compute capability", "id": "machine", "memory_bus_bits": "memory bus, bits",
    "highest_sm_clock": "highest SM clock", "fp32_lanes": "FP32 lanes per multiprocessor",
}  # fmt: skip


def machine_name(record: RunRecord) -> str:
    """Return the name of what was measured: the device's, else the CPU's, else the machine's id."""
    device, host = record.machine.get("device"), record.machine.get("host")
    if isinstance(device, dict) and device.get("name"):
        return str(device["name"])
    if isinstance(device, str):
        return device
    if isinstance(host, dict) and host.get("cpu"):
        return str(host["cpu"])
    return str(record.machine.get("id", "an unnamed machine"))


def backend_name(record: RunRecord) -> str:
    """Return the name of the backend, with the environment where records of several are kept apart."""
    environment = record.owner[2]
    return f"{record.backend} ({environment})" if environment else record.backend


def backend_text(backend: str) -> str:
    """Return `cuda backend` for the name of a backend, with whose times they are where it times no kernels.

    The name may have the environment behind it, as `backend_name` returns it.
    """
    known = STAND_INS.get(backend.partition(" (")[0])
    return f"{backend} backend (times of the {known.name})" if known else f"{backend} backend"


def devices_text(record: RunRecord) -> str | None:
    """Return `2 GPUs: ` and their UUIDs, where parts of several devices were merged; else None."""
    several = len(record.uuids) > 1
    return f"{len(record.uuids)} GPUs: {', '.join(record.uuids)}" if several else None


def facts(record: RunRecord) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return titled groups of (name, value) pairs: device, host, software, protocol, conditions; no empty ones."""
    loose = {key: value for key, value in record.machine.items() if not isinstance(value, dict)}
    loose |= {"uuid": several} if (several := devices_text(record)) else {}
    nested = [(key.capitalize(), value) for key, value in record.machine.items() if isinstance(value, dict)]
    groups = [("Machine", loose), *nested, ("Software", record.software), ("Protocol", record.protocol)]
    shown = [(str(title), [_pair(*item) for item in values.items()]) for title, values in groups if values]
    seen = conditions(record)
    return shown + ([("While it was measured", list(words(seen)))] if seen else [])


def _pair(key: str, value: object) -> tuple[str, str]:
    return _WORDS.get(key, key.replace("_", " ")), _text(key, value)


def _text(key: str, value: object) -> str:
    if key.endswith("_bytes") and isinstance(value, int):
        return bytes_text(value)
    if key.endswith("_clock") and isinstance(value, int):
        return rate_text(value, "Hz")
    if key == "compute_capability" and isinstance(value, int):
        return f"{value // 10}.{value % 10}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    if isinstance(value, dict):
        parts = {name: f"({_text('', item)})" if isinstance(item, dict) else item for name, item in value.items()}
        return ", ".join(f"{name.replace('_', ' ')} {item}" for name, item in parts.items())
    return "-" if value is None else str(value)
