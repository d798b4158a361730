"""What `prism-bench profile` does with its words: choose a tool, keep the record, print the table."""

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from rich.table import Table
from rich.text import Text

from prism_bench import options
from prism_bench.backends import Backend
from prism_bench.case import Case
from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError
from prism_bench.options.limits import CASE_SECONDS, limited
from prism_bench.profilers.failures import ProfilerFailed
from prism_bench.saving import Saver
from prism_bench.store import RecordPlace
from prism_bench.units import bytes_text, share_text, time_text

_SHARES = ("dram_share", "l2_share", "fp32_share", "tensor_share", "sfu_share", "issue_share", "occupancy")
# Where ncu cannot count at all, the tracer still can; any other failure is for the user to see.
_CLOSED = ("not_installed", "permission", "library_not_loaded", "driver_mismatch", "device_not_supported")


@dataclass(frozen=True)
class Wanted:
    """What is to be profiled, where, and where reports go."""

    backend: Backend
    catalogue: Catalogue
    cases: list[Case]
    reports: Path

    @cached_property
    def place(self) -> RecordPlace:
        """Where the record goes, every version of it."""
        return RecordPlace(self.reports)


def profile(wanted: Wanted, tool: str, plan: dict, quiet: bool):
    """The record of the profile, by the tool asked for; `auto` goes from ncu to CUPTI where counters are closed."""
    if tool in ("auto", "ncu"):
        try:
            return _counted(wanted, plan, quiet)
        except ProfilerFailed as error:
            if tool == "ncu" or error.failure.name not in _CLOSED:
                raise
            options.err().print(f"{error} Going on with cupti.", highlight=False, soft_wrap=True)
            tool = "cupti"
    return _traced(wanted, tool, plan)


def _counted(wanted, plan, quiet):
    from prism_bench.studies import profiling

    chosen = profiling.ProfilePlan(wanted.reports / "captures", **plan, tried=_last_tried(wanted, plan["chosen"]))
    with options.err().status("profiling") as status:
        told = lambda far: status.update(f"{far[0]} of {len(wanted.cases)} profiled, {far[1]}")  # noqa: E731
        save = Saver(lambda found: _keep(found, wanted.place))
        record = profiling.profile(wanted.catalogue, wanted.backend, wanted.cases, chosen, told, keep=save)
    commands = {case.profile["command"] for case in record.cases if case.profile}
    for command in sorted(commands) if not quiet else ():
        options.out().print(f"command: {command}", highlight=False, soft_wrap=True)
    return record


def _last_tried(wanted, chosen):
    """When this set was last tried on each case on this machine, by the readable records kept where reports go."""
    from prism_bench import identity, store

    tried: dict[str, str] = {}
    for _, record in store.readable(wanted.reports, identity.machine(wanted.backend.facts())["id"]):
        if any(case.profile.get("set") == chosen for case in record.cases):
            tried = {case.name: record.created for case in record.cases if case.status != "skipped"} | tried
    return tried


def _traced(wanted, tool, plan):
    from prism_bench.analysis.ledger import ledger
    from prism_bench.analysis.traced_profile import profiles
    from prism_bench.studies import profiling, tracing

    names, seconds = [case.task for case in wanted.cases], plan["seconds"]
    where = (wanted.catalogue, wanted.backend.name)
    with options.err().status(f"tracing with {tool}"):
        if tool == "nsys":
            timeline, repeats = tracing.trace_with_nsys(*where, names, wanted.reports / "captures", seconds), 1
        else:
            traced = tracing.trace_cases(*where, {name: [name] for name in names}, seconds=seconds)
            timeline, repeats = traced.timeline, tracing.REPEATS
    found = profiles(ledger(timeline, most=len(names)), repeats)
    return profiling.record_of_profiles(wanted.catalogue, wanted.backend, wanted.cases, found)


def tell(record, place: RecordPlace, into: Path | None, json: bool) -> int:
    """Keep the record and its table, print them, and say what the command ends with."""
    save, merge = Saver(lambda found: _keep(found, place)), Saver(lambda found: [_merged(found, into)])
    kept = [*(save.finish(record) or ()), *((merge.finish(record) or ()) if into else ())]
    return merge.exit_code(save.exit_code(_told(record, json, kept)))


def _keep(record, place):
    """The record, and the table of the newest counters of every case that this machine's records have; both paths."""
    from prism_bench import store
    from prism_bench.analysis.counters import newest_counted
    from prism_bench.analysis.profile_table import csv_text, newest_rows
    from prism_bench.files import write_atomically

    path = place.save(record)
    table = newest_rows(newest_counted(store.readable(place.root, path.parent.name)))
    write_atomically(path.parent / "metrics.csv", csv_text(table).encode())
    return path, path.parent / "metrics.csv"


def show_record(path: Path, catalogue: Catalogue | None, json: bool) -> int:
    """Print the table of a record with profiles; given a catalogue, beside the bytes that its sources touch at S0."""
    from prism_bench import store

    record = store.read(path)
    if not any(case.profile for case in record.cases):
        raise ResultsError(
            f"{path}: no case of it was profiled; 'prism-bench profile --into' adds counters to a record"
        )
    return _told(record, json, (), _emulated(record, catalogue) if catalogue else {})


def _emulated(record, catalogue):
    """By kernel and variant: different bytes touched over the declared ones, counted on the emulator at S0."""
    from prism_bench.studies.traffic import traffic

    profiled = {f"{case.kernel}:{case.variant}" if case.variant else case.kernel for case in record.cases}
    cases = [case for case in catalogue.cases((), ["S0"]) if case.kernel in profiled]
    counted = {}
    with options.err().status("emulating") as status:
        for case in cases:
            status.update(case.name)
            with limited(case.name, CASE_SECONDS):
                counted[case.kernel] = traffic(case)
    return {name: one.touched / one.declared for name, one in counted.items() if one.declared and one.launches}


def _told(record, json, kept, emulated=None):
    """Print the record's table, findings and files; what the command ends with."""
    from prism_bench.analysis.findings import exit_code
    from prism_bench.analysis.profile_table import profile_findings, rows

    found, lines = profile_findings(record), rows(record)
    for line in lines if emulated is not None else ():
        line["emulated_ratio"] = emulated.get(line["case"].split("[")[0])
    if json:
        plain = {"cases": lines, "findings": [asdict(one) for one in found]}
        options.print_json({**plain, "kept": [str(one) for one in kept]})
        return exit_code(found)
    options.out().print(table(lines))
    for one in found:
        style = {"bad": "red", "untrusted": "yellow"}.get(one.gravity)
        words = f"{one.case or 'capture'}: {one.message}"
        options.out().print(words, style=style, highlight=False, soft_wrap=True)
    for one in kept:
        options.out().print(f"kept: {one}", highlight=False, soft_wrap=True)
    return exit_code(found)


def _merged(record, into):
    """Put the profiles into the record at `into`: same machine, its own cases; returns its path."""
    from prism_bench import store

    other = store.read(into)
    if other.machine.get("id") != record.machine["id"]:
        raise ResultsError(f"{into}: measured on {other.machine.get('id')}, profiled on {record.machine['id']}; "
                           "counters go beside times of the same machine only")  # fmt: skip
    profiles = {case.name: case.profile for case in record.cases if case.profile}
    cases = tuple(replace(case, profile=profiles.get(case.name, case.profile)) for case in other.cases)
    return store.save(replace(other, cases=cases), into)


_HEADINGS = ("bound", "duration", "launches", "DRAM", "of model", "emulated", *_SHARES, "registers", "local")


def table(rows: list[dict]) -> Table:
    """The rows for people: shares of peaks, DRAM bytes over the compulsory ones, and what bounds each case.

    `emulated` is what the source touches over what its spec declares. A column without any figure is left out.
    """
    cells = [_cells(row) for row in rows]
    filled = [i for i in range(len(_HEADINGS)) if any(line[i] != "-" for line in cells)]
    made = Table(title="counted by the profiler; its durations are no benchmark times", title_justify="left")
    made.add_column("kernel", overflow="fold")
    made.add_column("label")
    for i in filled:
        made.add_column(_HEADINGS[i].replace("_share", ""), justify="right")
    for row, line in zip(rows, cells, strict=True):
        style = None if row["status"] == "ok" else "red"
        made.add_row(Text(row["case"].split("[")[0]), row["label"], *(line[i] for i in filled), style=style)
    return made


def _cells(row):
    shares = (share_text(row.get(name)) for name in _SHARES)
    parts = [row.get(name) for name in ("local_loads", "local_stores")]
    local = None if None in parts else sum(parts)
    facts = (row["bound"] or "-", time_text(row.get("profiler_duration")), _count(row.get("launches")))
    memory = (bytes_text(row["dram_bytes"]), share_text(row["dram_ratio"]), share_text(row.get("emulated_ratio")))
    return (*facts, *memory, *shares, _count(row.get("profiled_registers")), _count(local))


def _count(number):
    return "-" if number is None else f"{number:.4g}"


def show_capture(path: Path, json: bool) -> None:
    """Print the launches of a capture that somebody else made, with the metric set where its names are known."""
    from prism_bench.profilers import ncu_csv, ncu_report
    from prism_bench.profilers.chips import chip_of
    from prism_bench.profilers.metrics import combined

    launches = (ncu_report if path.suffix == ".ncu-rep" else ncu_csv).read(path)
    told = [
        {"kernel": one.kernel, "grid": one.grid, "block": one.block, "capability": one.capability,
         "values": combined([one], chip_of(one.capability), "all") if one.capability else {},
         "metrics": {name: asdict(quantity) for name, quantity in one.metrics.items()},
         "rules": [asdict(rule) for rule in one.rules]}
        for one in launches
    ]  # fmt: skip
    if json:
        options.print_json(told)
        return
    for one in told:
        options.out().print(Text(f"{one['kernel']}  grid {one['grid']}  block {one['block']}", style="bold"))
        known = {name: entry for name, entry in one["values"].items() if entry["value"] is not None}
        shown = known or {name: entry for name, entry in one["metrics"].items() if entry["value"] is not None}
        for name, entry in shown.items():
            options.out().print(f"  {name} = {entry['value']:.6g} {entry['unit']}", highlight=False)
        for rule in one["rules"]:
            options.out().print(Text(f"  ncu says ({rule['kind']}): {rule['text'][:300]}", style="dim"))
