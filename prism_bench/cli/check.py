"""`prism-bench check`: may this record pass?"""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from prism_bench import options
from prism_bench.cli import telling
from prism_bench.errors import ResultsError
from prism_bench.options import pairs

NAME = "check"


def command(
    record: Annotated[Path | None, typer.Argument(help="a run record; the newest one without it")] = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    markdown: Annotated[Path | None, typer.Option(help="write Markdown for a pull request to this file")] = None,
    junit: Annotated[Path | None, typer.Option(help="write JUnit XML to this file")] = None,
    github: Annotated[bool, typer.Option("--github", help="print GitHub annotations as well")] = False,
    alert: Annotated[
        bool, typer.Option("--alert", help="tell the webhooks of PRISM_BENCH_WEBHOOK and PRISM_BENCH_SLACK_WEBHOOK")
    ] = False,
    told: Annotated[Path | None, typer.Option(help="folder of what was told before; <runs>/../alerts")] = None,
    noise: pairs.NoiseOption = pairs.DEFAULT_NOISE,
    json: options.JsonOption = False,
) -> None:
    """Ask a record everything that the gate asks.

    Did it run well, are its budgets met, is it slower than the baseline, the last record or its own past?

    Ends with 2 where nothing could be judged. What was not measured is told as unmeasured, never as met.
    """
    found = options.open_catalogue(catalogue)
    with telling.failures(told or runs.parent / "alerts") if alert else nullcontext():
        passed = _gate(record, found, runs, noise)
        _show(passed, json)
        _write(passed, markdown, junit)
    if github:
        _annotate(passed, found, quiet=json)
    if alert:
        telling.tell(passed, told or runs.parent / "alerts")
    raise SystemExit(passed.exit_code)


def _gate(record, catalogue, runs, noise):
    from prism_bench import store
    from prism_bench.analysis.against_baseline import baseline_part
    from prism_bench.analysis.against_history import trend_part
    from prism_bench.analysis.against_last import last_part, once
    from prism_bench.analysis.gate import gate
    from prism_bench.analysis.noise_file import stored_noise
    from prism_bench.analysis.reading import read
    from prism_bench.analysis.trend.choice import kept_floors

    source = record or store.newest(runs)
    reading = read(store.read(source), catalogue)
    with options.err().status("reading records"):
        history = store.read_history(runs)
    floors = stored_noise(str(reading.record.machine.get("id")), noise)
    baseline = baseline_part(reading, source, runs, floors)
    last = once(last_part(reading, history, runs, floors), [baseline])
    return gate(reading, source, [baseline, last, trend_part(history, reading.record, kept_floors(history, noise))])


def _show(passed, json):
    from prism_bench.report.gate import json_view
    from prism_bench.report.terminal import gate as terminal

    if json:
        options.print_json(json_view.view(passed))
    else:
        options.out().print(terminal.view(passed), crop=False)


def _write(passed, markdown, junit):
    from prism_bench.files import write_atomically
    from prism_bench.report.gate import junit as xml
    from prism_bench.report.gate import markdown as text

    for path, document in ((markdown, text.document), (junit, xml.document)):
        try:
            if path:
                write_atomically(path, document(passed).encode())
        except OSError as error:
            raise ResultsError(f"cannot write {path}: {error.strerror}") from error


def _annotate(passed, catalogue, quiet):
    """GitHub reads both streams; JSON stays alone on its own."""
    from prism_bench.report.gate.annotations import lines

    for line in lines(passed, catalogue, Path.cwd()):
        typer.echo(line, err=quiet)
