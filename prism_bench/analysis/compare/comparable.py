"""Rule for which records may be compared: the same backend, device and protocol, and nothing less.

Comparisons, the gate and the trend share the rule: where `value_settings` differ, the times differ for that reason.
Driver and toolkit may differ: they are the environment of the machine code, in which identical code may rightly take
another time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from prism_bench.errors import ResultsError
from prism_bench.metric import is_host_time
from prism_bench.run_record import RunRecord
from prism_bench.units import count_text

# How often, in which order and when a measurement ends: settings of a protocol that change the error of a value and not
# the value. All others may change it: `seeds` choose the inputs that are timed, and an unknown one may do anything.
FREE = ("processes", "seed", "criteria")
SHOWN = 4  # differing settings that are named


def value_settings(protocol: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of a protocol that records must share to be compared, or to be one series without a break."""
    return {key: value for key, value in protocol.items() if key not in FREE}


def free_changes(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """Return the FREE settings of two protocols that differ, such as `criteria cold_time max_samples 60 -> 12`.

    Those that one protocol does not have are left out; beyond SHOWN they are counted.
    """
    known = [key for key in FREE if key in old and key in new]
    found = _changes(*(_flat({key: protocol[key] for key in known}) for protocol in (old, new)))
    return found if len(found) <= SHOWN else [*found[:SHOWN], f"{len(found) - SHOWN} more"]


# What an administrator sets of a board: other settings give the same board other times.
BOARD_SETTINGS = ("power_limit", "application_sm_clock", "application_memory_clock")


def board_changes(old: Iterable[Mapping[str, object]], new: Iterable[Mapping[str, object]]) -> list[str]:
    """Return the settings of the boards that differ, such as `power_limit 700 -> 500`; an unknown one does not."""
    values = [{key: sorted({board[key] for board in boards if board.get(key)}, key=str) for key in BOARD_SETTINGS}
              for boards in (list(old), list(new))]  # fmt: skip
    known = [key for key in BOARD_SETTINGS if values[0][key] and values[1][key]]
    sides = [{key: ", ".join(map(_text, side[key])) for key in known} for side in values]
    return _changes(*sides)


def _flat(settings: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found |= _flat(cast("Mapping[str, object]", value), f"{prefix}{key} ")
        elif value is not None:
            found[prefix + key] = value
    return found


def _changes(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """Return each setting that differs with both values; one that a side does not have is `unknown` there."""
    names = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    return [f"{name} {_text(old.get(name, 'unknown'))} -> {_text(new.get(name, 'unknown'))}" for name in names]


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _settings(a: RunRecord, b: RunRecord) -> list[str]:
    """Return the settings of the runs that differ and do not keep them from being compared, in one sentence."""
    tuning = [{"launches": str(record.tuning.get("asked", "untuned"))} for record in (a, b)]
    found = [*free_changes(a.protocol, b.protocol), *board_changes(a.boards, b.boards), *_changes(*tuning)]
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
    cut_short = [f"{name} was cut short" for name, record in zip(names, (a, b), strict=True) if not record.complete]
    return [*_units(a, b), *_software(a, b), *_settings(a, b), *cut_short]


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
