"""`prism-bench check`: whether a record passes the gate, and the baseline that later records are compared with."""

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from prism_bench.cli import measuring, options
from prism_bench.errors import ResultsError
from prism_bench.units import count_text

NAME = "check"
_AcceptOption = Annotated[
    bool, typer.Option("--accept", help="Make the record the baseline of its device, without judging it.")
]
_MachineOption = Annotated[str | None, typer.Option(help=options.MACHINE)]
_FORMS = (".md", ".xml")  # a comment for a pull request, and JUnit


def command(
    record: options.RecordArgument = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    output: options.OutputOption = None,
    alert: Annotated[
        bool, typer.Option("--alert", help="Alert the webhooks of PRISM_BENCH_WEBHOOK and PRISM_BENCH_SLACK_WEBHOOK.")
    ] = False,
    noise: measuring.NoiseOption = measuring.DEFAULT_NOISE,
    accept: _AcceptOption = False,
    machine: _MachineOption = None,
    json: options.JsonOption = False,
) -> None:
    """Check a record against its budgets, baseline and history.

    Did it run well, are its budgets met, is it slower than the baseline, the last record or its own past?

    --output writes Markdown for a pull request (.md) or JUnit (.xml). In a job of GitHub Actions annotations are
    printed as well. Which alerts were sent is kept in the folder alerts next to that of the records.

    With --accept nothing is judged: the record's medians are kept as the baseline of its device, next to its budgets or
    in the file of --output (.toml). Without RECORD they are those of the newest commit.

    Ends with 2 where nothing could be judged. Unmeasured budgets count as neither met nor missed.
    """
    if accept:
        options.refuse({"--alert": alert}, "leave it out with --accept")
        baseline = options.written_forms(output, (".toml",)).get(".toml")
        _accept(record, runs, catalogue, machine, baseline, json=json)
        return
    options.refuse({"--machine": machine}, "it is for --accept")
    forms = options.written_forms(output, _FORMS)
    from prism_bench.analysis.gate.checks import judged
    from prism_bench.io.documents import no_collection
    from prism_bench.report import gate
    from prism_bench.report.terminal import gate as terminal

    kernels = options.open_catalogue(catalogue)
    state = runs.parent / "alerts"
    with gate.failures(state, options.remark) if alert else nullcontext():
        with options.err().status("reading records"), options.records_of(record), no_collection():
            passed = judged(record, kernels, runs, noise)
        if json:
            options.print_json(gate.view(passed))
        else:
            options.out().print(terminal.view(passed), crop=False)
        gate.write_files(passed, forms.get(".md"), forms.get(".xml"))
    if os.environ.get("GITHUB_ACTIONS") == "true":  # which reads both streams; JSON is on the other one
        for line in gate.lines(passed, kernels, Path.cwd()):
            typer.echo(line, err=json)
    if alert:
        gate.send(passed, state, options.remark)
    raise SystemExit(passed.exit_code)


def _accept(
    record: Path | None, runs: Path, catalogue: Path | None, machine: str | None, output: Path | None, *, json: bool
) -> None:
    """Write the record's medians as the baseline of its device; refuse a record of another `machine`."""
    from prism_bench.analysis.gate.budgets import baseline_of, baseline_path, known_case, write_baseline
    from prism_bench.record import store

    source, kernels = record or store.newest_commit(runs), options.open_catalogue(catalogue)
    if record is None and source != (last := store.newest(runs)):
        options.remark(f"{source.name} is of the newest commit; {last.name} was measured later", "yellow")
    # A reader elsewhere can follow the record's path where it is relative to the current folder, or is a name.
    path, here = source.resolve(), Path.cwd()
    portable = path.relative_to(here).as_posix() if path.is_relative_to(here) else path.name
    accepted = store.read(source)
    if machine and machine != accepted.machine["id"]:
        raise ResultsError(f"{source}: it is of {accepted.machine['id']}, not of {machine}")
    baseline = baseline_of(accepted, portable)
    for case in dict.fromkeys(case for case, _ in baseline.seconds):
        known_case(case, kernels, str(source))
    target = write_baseline(baseline, output or baseline_path(baseline.device, kernels))
    count = len({case for case, _ in baseline.seconds})
    if json:
        options.print_json({"path": str(target), "record": str(source), "device": baseline.device, "cases": count})
    else:
        options.line(f"baseline: {count_text(count, 'case')} of {source.name} for {baseline.device}: {target}")
