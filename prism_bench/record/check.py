"""The one place where a run record's file is held to its schema.

`checked` returns the file as objects of the schema, or names the first field that is damaged
(`cases[3].measurements[0].processes[1].unit`). `checked_with_tables` also returns the parts that are kept as tables
(facts of the machine, code, profiles) with all of their keys, so that saving a record again loses nothing.
"""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar, cast

import msgspec

from prism_bench.errors import ResultsError
from prism_bench.record.schema import SCHEMA, CaseFile, MeasurementFile, OpenCase, OpenRecord, RecordFile

_Kind = TypeVar("_Kind")


def checked(source: object, origin: str) -> RecordFile:
    """Return the record in `source`, JSON text or parsed JSON; a ResultsError names `origin` and what is damaged."""
    return checked_with_tables(source, origin)[0]


def checked_with_tables(source: object, origin: str) -> tuple[RecordFile, OpenRecord]:
    """Return the record with those of its parts that are kept as tables; whoever reads it, all of it is checked."""
    found = _taken(source, RecordFile, origin)
    _require_sound(found, origin)
    return found, _taken(source, OpenRecord, origin)


def checked_case(plain: object, origin: str) -> tuple[CaseFile, OpenCase]:
    """Return one case of parsed JSON, checked and open."""
    found = _taken(plain, CaseFile, origin)
    _require_numbers([found.workload, found.configuration], origin)
    return found, _taken(plain, OpenCase, origin)


def checked_measurement(plain: object, origin: str) -> MeasurementFile:
    """Return one measurement of parsed JSON."""
    return _taken(plain, MeasurementFile, origin)


def _taken(source: object, kind: type[_Kind], origin: str) -> _Kind:
    decode: Callable[..., _Kind] = msgspec.json.decode if isinstance(source, bytes | bytearray) else msgspec.convert
    try:
        return decode(source, type=kind)
    except msgspec.ValidationError as error:
        if kind is RecordFile:
            _require_schema(source, origin)
        raise ResultsError(f"{origin}: damaged run record ({_words(error)})") from error
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise ResultsError(f"{origin}: not a readable run record ({error})") from error


def _require_schema(source: object, origin: str) -> None:
    """Say so where the file is no run record at all, or of a newer schema."""
    try:
        plain = msgspec.json.decode(source) if isinstance(source, bytes | bytearray) else source
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise ResultsError(f"{origin}: not a readable run record ({error})") from error
    if not isinstance(plain, dict) or "schema" not in plain or "cases" not in plain:
        raise ResultsError(f"{origin}: not a run record (no 'schema' and 'cases')")
    if isinstance(plain["schema"], int) and plain["schema"] > SCHEMA:
        raise ResultsError(f"{origin}: schema {plain['schema']} is newer than {SCHEMA}; upgrade prism-bench to read it")


def _words(error: Exception) -> str:
    """Put the place before the complaint: `cases[3].bytes: expected int, got str`."""
    message, _, path = str(error).partition(" - at ")
    place = path.strip("`").removeprefix("$").removeprefix(".")
    message = message.replace("`", "")
    return f"{place}: {message[:1].lower()}{message[1:]}" if place else message


def _require_sound(found: RecordFile, origin: str) -> None:
    """Refuse what no type excludes: no case, a time that is none, a name that two cases have."""
    if not found.cases:
        raise ResultsError(f"{origin}: a run record without cases: nothing was measured; remove the file")
    parts = [(f"parts[{i}].created", part.created) for i, part in enumerate(found.parts) if part.created]
    times = [("created", found.created), *([("committed", found.committed)] if found.committed else []), *parts]
    for place, text in times:
        if not _is_time(text):
            raise ResultsError(f"{origin}: damaged run record ({place}: {text!r:.40} is no time of ISO 8601)")
    _require_numbers(found.software, origin)
    seen: dict[str, int] = {}
    for index, case in enumerate(found.cases):
        if seen.setdefault(case.name, index) != index:
            reason = f"cases[{index}].name: {case.name!r:.80} is the name of cases[{seen[case.name]}] already"
            raise ResultsError(f"{origin}: damaged run record ({reason})")
        _require_numbers([case.workload, case.configuration], f"{origin}: cases[{index}]")
        for name, counter in case.profile.values.items():
            if counter.value is None and counter.reason is None:
                reason = f"cases[{index}].profile.values[{name!r:.40}]: neither a value nor a reason"
                raise ResultsError(f"{origin}: damaged run record ({reason})")


def _require_numbers(value: object, origin: str) -> None:
    """Refuse integers beyond 64 bits, which not every writer of JSON can write again."""
    if type(value) is int:
        if not -(2**63) <= value < 2**64:
            raise ResultsError(f"{origin}: damaged run record (an integer beyond 64 bits)")
    elif isinstance(value, dict):
        for one in cast("dict[str, object]", value).values():
            _require_numbers(one, origin)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            _require_numbers(one, origin)


def _is_time(text: str) -> bool:
    try:
        return 1970 <= datetime.fromisoformat(text).year < 9999
    except ValueError:
        return False
