"""`prism-bench fuse`: what fusing each chain saves, stage by stage, and kernels generated from programs of stages."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from prism_bench.cli import options
from prism_bench.cli.options import CASE_SECONDS, limited
from prism_bench.errors import UsageError
from prism_bench.io import project

if TYPE_CHECKING:
    from prism_bench.extensions.fusion.benefit import ChainLedger
    from prism_bench.extensions.fusion.keeping import Declaration, GeneratedFile
    from prism_bench.record.run_record import RunRecord
    from prism_bench.spec.kernel import Chain, KernelSpec
    from prism_bench.workflows.traffic import CaseTraffic

ITEMS, PROFILES = Path("reports/persistent"), Path("reports/profiles")

_CasesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CASES]...",
        help="Choose chains, or kernels that have chains; with --write programs by name; default: all.",
    ),
]


def command(
    cases: _CasesArgument = None,
    filter: options.FilterOption = None,
    source: options.SourceOption = None,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    output: options.OutputOption = None,
    write: options.WriteOption = False,
    dry_run: options.DryRunOption = False,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Show what fusing kernels saves, or write the fused kernels.

    Launches, gaps, bytes, temporaries, time, energy and error of every stage of a chain in the newest record that
    timed one, with the newest counters and times of served items; --output draws before and after (.png). Without a
    record of a GPU, or with --backend emulator, the emulator counts the traffic at S0. Ends with 1 where a fused stage
    fails the published rule at S0.

    --write makes the source, and PTX where NVRTC is installed, of programs in spec files, kernels/<family>/<name>.py,
    in <family>/generated. With --dry-run it writes nothing and ends with 1 where they would change.
    """
    names = options.patterns(cases, filter)
    if write:
        others = {"--from": source, "--label": label, "--backend": backend, "--output": output}
        options.refuse(others, "leave it out with --write")
        _write(names, catalogue, check=dry_run, json=json)
    options.refuse({"--dry-run": dry_run}, "it is for --write")
    if backend not in (None, "emulator"):
        raise UsageError(f"--backend {backend}: only the emulator counts traffic here; leave it out to read a record")
    picture = options.written_forms(output, (".png",)).get(".png")
    from prism_bench.analysis.bounds.profiles import newest_counted
    from prism_bench.extensions.fusion import benefit as fusion
    from prism_bench.extensions.fusion.benefit.ledger import read_times
    from prism_bench.extensions.fusion.report.terminal import fusion_json, fusion_view
    from prism_bench.record import store

    chains = fusion.chains_of(options.open_catalogue(catalogue), names)
    (read, missing), labels = _record(chains, source), options.chosen_labels(label)
    traffic = _traffic(chains, labels) if backend or read is None else {}
    uncounted = "counted on the emulator at S0 alone" if traffic else fusion.Sources.uncounted
    served = read_times(_stored(ITEMS))
    counted = newest_counted(store.readable(_stored(PROFILES)))
    sources = fusion.Sources(read, traffic, missing, uncounted, served, counted)
    ledgers = fusion.ledgers(chains, labels, sources)
    table = fusion.compared(ledgers)
    if picture:
        _draw(ledgers, picture)
    options.show(lambda: fusion_json(ledgers, table, sources), lambda: fusion_view(ledgers, table, sources), json=json)
    failed = any(row.passed is False for ledger in ledgers if ledger.label == "S0" for row in ledger.rows)
    raise SystemExit(1 if failed else 0)


def _record(chains: "list[tuple[KernelSpec, Chain]]", source: Path | None) -> "tuple[RunRecord | None, str]":
    """Return the record of this file, or the newest of the folder in which a chain has times on a GPU.

    Without one there, return None and the reason.
    """
    from prism_bench.record import store

    if source and not source.is_dir():
        return store.read(source), ""
    runs = source or _stored(options.DEFAULT_RUNS)
    kernels = {spec.name for spec, _ in chains}
    for _, record in store.readable(runs):
        if record.backend == "cuda" and any(case.kernel in kernels and case.measurements for case in record.cases):
            return record, ""
    names = " ".join(f"--filter {name}" for name in sorted(kernels))
    return None, f"no record of a GPU below {runs} timed it; 'prism-bench run {names}' on a GPU makes one"


def _stored(folder: Path) -> Path:
    return project.stored(folder, project.current())


def _traffic(chains: "list[tuple[KernelSpec, Chain]]", labels: Collection[str]) -> "dict[str, CaseTraffic]":
    """Return the traffic of every stage at S0, by the case's name: larger workloads would take the emulator hours."""
    from prism_bench.extensions.fusion.benefit import stages_of
    from prism_bench.workflows.traffic import traffic

    cases = [case for spec, chain in chains for case in stages_of(spec, chain, "S0").values() if "S0" in labels]
    counts: dict[str, CaseTraffic] = {}
    with options.err().status("counting on the emulator") as status:
        for case in cases:
            status.update(f"counting {case.name}")
            with limited(case.name, CASE_SECONDS):
                counts[case.name] = traffic(case)
    return counts


def _draw(ledgers: "list[ChainLedger]", path: Path) -> None:
    from prism_bench.errors import ResultsError
    from prism_bench.extensions.fusion.report.charts import fusion_picture
    from prism_bench.io.files import write_atomically

    try:
        write_atomically(path, fusion_picture(ledgers))
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error
    options.err().print(f"picture: {path}", highlight=False, soft_wrap=True)


# Kernels generated from the programs of a catalogue.


def _write(names: Sequence[str], catalogue: Path | None, *, check: bool, json: bool) -> NoReturn:
    """Write the kernels of these programs; with `check` write nothing, and end with 1 where they would change."""
    from prism_bench.extensions.fusion.keeping import declarations, keep_source, left_over

    folder = options.catalogue_folder(catalogue)
    declared = declarations(folder, names)
    kept = [keep_source(declaration, write=not check) for declaration in declared]
    done = {declaration.name for declaration in declared} - {
        file.program for file in kept if check and not file.is_same
    }
    without = _keep_ptx([declaration for declaration in declared if declaration.name in done], folder, check, kept)
    leftover = left_over(folder)
    _print(kept, leftover, without, json)
    raise SystemExit(1 if leftover or (check and not all(file.is_same for file in kept)) else 0)


def _keep_ptx(declared: "list[Declaration]", folder: Path, check: bool, kept: "list[GeneratedFile]") -> str | None:
    """Add the states of the PTX files to `kept`; return the reason where there is no compiler."""
    from prism_bench.errors import BackendUnavailable
    from prism_bench.extensions.fusion.keeping import keep_ptx

    opened = options.open_catalogue(folder)
    with options.err().status("compiling") as status:
        for declaration in declared:
            status.update(declaration.name)
            try:
                kept += keep_ptx(declaration, opened, write=not check)
            except BackendUnavailable as error:
                return str(error)
    return None


def _print(kept: "list[GeneratedFile]", leftover: list[Path], without: str | None, json: bool) -> None:
    if json:
        files = [{"program": file.program, "path": str(file.path), "state": file.state} for file in kept]
        options.print_json({"files": files, "left_over": [str(path) for path in leftover], "no_ptx": without})
        return
    console = options.out()
    for file in kept:
        console.print(
            f"{file.state:8} {file.path}", style="dim" if file.is_same else "yellow", highlight=False, soft_wrap=True
        )
    for path in leftover:
        console.print(
            f"leftover {path}: no program declares it; remove it", style="red", highlight=False, soft_wrap=True
        )
    if without:
        console.print(f"no PTX: {without}", style="dim", highlight=False, soft_wrap=True)
