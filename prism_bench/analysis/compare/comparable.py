"""Rule for which records may be compared: the same backend, device and protocol, and nothing less.

Comparisons, the gate and the trend share the rule: where `value_settings` differ, the times differ for that reason.
Driver and toolkit may differ: they are the environment of the machine code, in which identical code may rightly take
another time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from prism_bench.errors import ResultsError
from prism_bench.record.run_record import RunRecord
from prism_bench.spec.metric import is_host_time
from prism_bench.units import count_text

# How often, in which order and when a measurement ends: settings of a protocol that change the error of a value and not
# the value. All others may change it: `seeds` choose the inputs that are timed, and an unknown one may do anything.
_FREE = ("processes", "seed", "criteria", "looks")
SHOWN = 4  # differing settings that are named


def value_settings(protocol: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of a protocol that records must share to be compared, or to be one series without a break."""
    return {key: value for key, value in protocol.items() if key not in _FREE}


# What an administrator sets of a board: other settings give the same board other times.
_BOARD_SETTINGS = ("power_limit", "application_sm_clock", "application_memory_clock")
Settings = Mapping[str, Mapping[str, str]]  # texts by name, in groups that a record has or does not have


def free_settings(protocol: Mapping[str, object]) -> Settings:
    """Return the FREE settings of a protocol, nested ones by their path: `criteria cold_time max_samples`."""
    return {key: _flat(protocol[key], key) for key in _FREE if key in protocol}


def board_settings(boards: Iterable[Mapping[str, object]]) -> Settings:
    """Return BOARD_SETTINGS as far as a record's boards have them."""
    every = list(boards)
    known = {key: sorted({_text(board[key]) for board in every if board.get(key)}) for key in _BOARD_SETTINGS}
    return {key: {key: ", ".join(values)} for key, values in known.items() if values}


def settings_of(record: RunRecord) -> Settings:
    """Return the settings that may differ between records that are compared, and that a reader should know of."""
    launches = {"launches": {"launches": str(record.tuning.get("asked", "untuned"))}}
    return {**free_settings(record.protocol), **board_settings(record.boards), **launches}


def setting_changes(old: Settings, new: Settings) -> list[str]:
    """Return the settings that differ, such as `criteria cold_time max_samples 60 -> 12`.

    A group that only one side has is left out; beyond SHOWN settings they are counted.
    """
    found = [
        f"{name} {old[group].get(name, 'unknown')} -> {new[group].get(name, 'unknown')}"
        for group in old
        if group in new
        for name in dict.fromkeys([*old[group], *new[group]])
        if old[group].get(name) != new[group].get(name)
    ]
    return found if len(found) <= SHOWN else [*found[:SHOWN], f"{len(found) - SHOWN} more"]


def _flat(value: object, name: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {name: _text(value)}
    settings = cast("Mapping[str, object]", value)
    return {path: text for key, inner in settings.items() for path, text in _flat(inner, f"{name} {key}").items()}


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _settings(a: RunRecord, b: RunRecord) -> list[str]:
    """Return the settings that differ, in one sentence."""
    found = setting_changes(settings_of(a), settings_of(b))
    return [f"settings differ: {', '.join(found)}"] if found else []


def require_comparable(a: RunRecord, b: RunRecord, names: tuple[str, str]) -> list[str]:
    """Return what a reader should know about the pair; a ResultsError names place and rule where they differ."""
    settings = value_settings(a.protocol), value_settings(b.protocol)
    for word, one, other in (
        ("backend", a.backend, b.backend),
        ("device", device_of(a), device_of(b)),
        *((f"protocol's {key}", settings[0].get(key), settings[1].get(key)) for key in {**settings[0], **settings[1]}),
    ):
        if one != other:
            raise ResultsError(
                f"{names[1]}: its {word} is {other!r}, that of {names[0]} is {one!r}; "
                "only records of one backend, device and protocol can be compared"
            )
    apart = a.owner[2], b.owner[2]
    places = [f"the environments differ: {apart[0] or 'none'} -> {apart[1] or 'none'}"] if apart[0] != apart[1] else []
    cut_short = [f"{name} was cut short" for name, record in zip(names, (a, b), strict=True) if not record.complete]
    return [*_units(a, b), *places, *_software(a, b), *_settings(a, b), *cut_short]


def device_of(record: RunRecord) -> str:
    """Return the device's name; the machine's where the record knows no device."""
    return str(record.machine.get("device") or record.machine.get("id"))


def _units(a: RunRecord, b: RunRecord) -> list[str]:
    """Return what was not measured on the same unit; of merged records, kernel by kernel."""
    if not (a.parts or b.parts):
        one, other = a.machine.get("uuid"), b.machine.get("uuid")
        return ["the records come from two units of one device"] if one and other and one != other else []
    pairs = [(a.unit_of(kernel), b.unit_of(kernel)) for kernel in _timed(a) & _timed(b)]
    known = [pair for pair in pairs if all(pair)]
    moved = sum(one != other for one, other in known)
    were = "was" if moved == 1 else "were"
    words = f"{moved} of {count_text(len(known), 'kernel')} {were} measured on different units of one device"
    return [words] if moved else []


def other_host(metric: str, hosts: tuple[str | None, str | None], names: tuple[str, str]) -> str | None:
    """Return why a time does not compare: the hosts' clocks read it, and these are not known to be one host.

    None where it compares. An unknown host counts as another one: copies took 1.47 times as long on a second host.
    """
    if not is_host_time(metric) or (hosts[0] and hosts[0] == hosts[1]):
        return None
    sides = " and ".join(names)
    return f"the host's clock read the {metric.replace('_', ' ')}, and {sides} are not known to be of one host"


def _timed(record: RunRecord) -> set[str]:
    return {case.kernel for case in record.cases if not case.is_edge}


def _software(a: RunRecord, b: RunRecord) -> list[str]:
    """Return the versions that differ, in one sentence."""
    names = [name for name in dict.fromkeys([*a.software, *b.software]) if a.software.get(name) != b.software.get(name)]
    pairs = [f"{name} {a.software.get(name, 'none')} -> {b.software.get(name, 'none')}" for name in names]
    return [f"software differs: {', '.join(pairs)}"] if pairs else []


LAUNCHED = ("sass", "plan", "launches", "shared_bytes")  # what makes code and its launches the same
# Software between machine code and its time; NumPy and compilers do not once the code is the same.
SOFTWARE = ("driver", "runtime", "cuda", "cupy", "nvrtc")


def software_changes(a: RunRecord, b: RunRecord) -> str | None:
    """Return the versions of driver and toolkit that differ, in words; None where none does."""
    names = [name for name in dict.fromkeys([*a.software, *b.software]) if name.startswith(SOFTWARE)]
    pairs = [(name, a.software.get(name, "none"), b.software.get(name, "none")) for name in names]
    return ", ".join(f"{name} {one} -> {other}" for name, one, other in pairs if one != other) or None


def is_other_unit(a: RunRecord, b: RunRecord, kernel: str) -> bool:
    """Return whether two devices measured the kernel; one that a record does not name is no other one."""
    units = a.unit_of(kernel), b.unit_of(kernel)
    return all(units) and units[0] != units[1]


@dataclass(frozen=True)
class Surroundings:
    """Both records, and the `software` that differs between them."""

    a: RunRecord
    b: RunRecord
    software: str | None

    def of(self, kernel: str) -> str | None:
        """Return what differs around the kernel's machine code, in words; None where nothing does."""
        unit = "another unit of the device" if is_other_unit(self.a, self.b, kernel) else None
        return self.software or unit
