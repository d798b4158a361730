"""Rule for which records may be compared: those of the same backend, device and protocol.

Comparisons, the gate and the trend share the rule: if `value_settings` differ, the times differ for that reason.
Driver and toolkit may differ: they are the environment of the machine code, in which identical code may rightly take
another time.
"""

from collections.abc import Iterable, Mapping
from typing import cast

from prism_bench.errors import ResultsError
from prism_bench.record.run_record import RunRecord
from prism_bench.spec.metric import is_host_time
from prism_bench.units import count_text

# Settings of a protocol that change the error of a value, not the value. All others may change it: `seeds` choose the
# timed inputs, and an unknown setting may do anything.
_FREE = ("processes", "seed", "criteria", "looks")
_BOARD_SETTINGS = ("power_limit", "application_sm_clock", "application_memory_clock")  # set by an administrator
SHOWN = 4  # differing settings that are named
LAUNCHED = ("sass", "plan", "launches", "shared_bytes")  # fields that identify code and its launches
# Software between machine code and its time; NumPy and compilers have no effect once the code is the same.
SOFTWARE = ("driver", "runtime", "cuda", "cupy", "nvrtc")

Settings = Mapping[str, Mapping[str, str]]  # texts by name, in groups that a record has or lacks


def require_comparable(a: RunRecord, b: RunRecord, names: tuple[str, str]) -> list[str]:
    """Return notes for a reader of the pair; raise a ResultsError that names the differing setting."""
    settings = value_settings(a.protocol), value_settings(b.protocol)
    for name, value_a, value_b in (
        ("backend", a.backend, b.backend),
        ("device", device_of(a), device_of(b)),
        *((f"protocol's {key}", settings[0].get(key), settings[1].get(key)) for key in {**settings[0], **settings[1]}),
    ):
        if value_a != value_b:
            raise ResultsError(
                f"{names[1]}: its {name} is {value_b!r}, that of {names[0]} is {value_a!r}; "
                "only records of one backend, device and protocol can be compared"
            )
    notes = _units(a, b)
    environments = a.owner[2], b.owner[2]
    if environments[0] != environments[1]:
        notes.append(f"the environments differ: {environments[0] or 'none'} -> {environments[1] or 'none'}")
    if versions := _version_changes(a, b):
        notes.append(f"software differs: {', '.join(versions)}")
    if changes := setting_changes(settings_of(a), settings_of(b)):
        notes.append(f"settings differ: {', '.join(changes)}")
    return [
        *notes,
        *(f"{name} was cut short" for name, record in zip(names, (a, b), strict=True) if not record.complete),
    ]


def _units(a: RunRecord, b: RunRecord) -> list[str]:
    """Return a note if different units were measured; of merged records, counted by kernel."""
    if not (a.parts or b.parts):
        units = a.machine.get("uuid"), b.machine.get("uuid")
        return ["the records come from two units of one device"] if all(units) and units[0] != units[1] else []
    kernels_a, kernels_b = ({case.kernel for case in record.cases if not case.is_edge} for record in (a, b))
    known = [pair for kernel in kernels_a & kernels_b if all(pair := (a.unit_of(kernel), b.unit_of(kernel)))]
    moved = sum(unit_a != unit_b for unit_a, unit_b in known)
    were = "was" if moved == 1 else "were"
    note = f"{moved} of {count_text(len(known), 'kernel')} {were} measured on different units of one device"
    return [note] if moved else []


def _version_changes(a: RunRecord, b: RunRecord, prefixes: tuple[str, ...] = ("",)) -> list[str]:
    names = [name for name in dict.fromkeys([*a.software, *b.software]) if name.startswith(prefixes)]
    versions = [(name, a.software.get(name, "none"), b.software.get(name, "none")) for name in names]
    return [f"{name} {old} -> {new}" for name, old, new in versions if old != new]


def software_changes(a: RunRecord, b: RunRecord) -> str | None:
    """Return the versions of driver and toolkit that differ as text, or None."""
    return ", ".join(_version_changes(a, b, SOFTWARE)) or None


def is_other_unit(a: RunRecord, b: RunRecord, kernel: str) -> bool:
    """Return whether two different devices are known to have measured the kernel."""
    units = a.unit_of(kernel), b.unit_of(kernel)
    return all(units) and units[0] != units[1]


def device_of(record: RunRecord) -> str:
    """Return the device's name, or the machine's id if the record has no device."""
    return str(record.machine.get("device") or record.machine.get("id"))


def other_host(metric: str, hosts: tuple[str | None, str | None], names: tuple[str, str]) -> str | None:
    """Return why times that the hosts' clocks read cannot be compared, or None.

    An unknown host counts as another host: copies took 1.47 times as long on a second host.
    """
    if not is_host_time(metric) or (hosts[0] and hosts[0] == hosts[1]):
        return None
    sides = " and ".join(names)
    return f"the host's clock read the {metric.replace('_', ' ')}, and {sides} are not known to be of one host"


# Settings of protocol, boards and launches.


def value_settings(protocol: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of a protocol that records must share to be compared, or to be one series without a break."""
    return {key: value for key, value in protocol.items() if key not in _FREE}


def free_settings(protocol: Mapping[str, object]) -> Settings:
    """Return the settings that may differ, nested ones by their path: `criteria cold_time max_samples`."""
    return {key: _flat(protocol[key], key) for key in _FREE if key in protocol}


def board_settings(boards: Iterable[Mapping[str, object]]) -> Settings:
    """Return the administrator's settings as far as a record's boards have them."""
    boards = list(boards)
    known = {key: sorted({_text(board[key]) for board in boards if board.get(key)}) for key in _BOARD_SETTINGS}
    return {key: {key: ", ".join(values)} for key, values in known.items() if values}


def settings_of(record: RunRecord) -> Settings:
    """Return the settings that may differ between compared records, and that a reader should know."""
    launches = {"launches": {"launches": str(record.tuning.get("asked", "untuned"))}}
    return {**free_settings(record.protocol), **board_settings(record.boards), **launches}


def setting_changes(old: Settings, new: Settings) -> list[str]:
    """Return the settings that differ, such as `criteria cold_time max_samples 60 -> 12`.

    A group that only one side has is left out; settings after the first SHOWN are only counted.
    """
    changes = [
        f"{name} {old[group].get(name, 'unknown')} -> {new[group].get(name, 'unknown')}"
        for group in old
        if group in new
        for name in dict.fromkeys([*old[group], *new[group]])
        if old[group].get(name) != new[group].get(name)
    ]
    return changes if len(changes) <= SHOWN else [*changes[:SHOWN], f"{len(changes) - SHOWN} more"]


def _flat(value: object, name: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {name: _text(value)}
    settings = cast("Mapping[str, object]", value)
    return {path: text for key, inner in settings.items() for path, text in _flat(inner, f"{name} {key}").items()}


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
