"""`prism-bench timeline`: what the warps of a kernel do when, by the regions that its source names."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import options
from prism_bench.cli.measuring import TunedOption, configured
from prism_bench.cli.options import CASE_SECONDS, TimeoutOption, limited
from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.units import count_text

if TYPE_CHECKING:  # these take long to load
    from prism_bench.backends import Backend
    from prism_bench.spec.case import Case

_PAIRS = 21  # of launches without and with probes: the fewest whose median has a 95 % interval well inside the range

_KernelArgument = Annotated[str, typer.Argument(metavar="KERNEL", help="Choose the kernel, kernel:variant or case.")]


def command(
    kernel: _KernelArgument,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    tuned: TunedOption = None,
    output: options.OutputOption = None,
    timeout: TimeoutOption = CASE_SECONDS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Time the regions that a kernel's source names, by warp.

    A source names a region by PB_REGION("name") after #include <prism_bench/regions.cuh>. The table has the times of
    regions, their spread over warps and multiprocessors, and what recording cost; --output FILE.json writes a trace for
    Perfetto, FILE.png a picture. Without a GPU the emulator shows order and counts.

    Ends with 2 where a region never closes, or more are entered than 16 million.
    """
    from prism_bench.extensions.timeline.picture import timeline_picture
    from prism_bench.extensions.timeline.recording import record
    from prism_bench.extensions.timeline.report import perfetto_trace, timeline_json, timeline_view
    from prism_bench.io.files import write_atomically

    files = options.written_forms(output, (".json", ".png"))
    opened = _backend(backend, json)
    case = _case(kernel, label, opened, catalogue, tuned)
    with options.err().status("recording"), limited(case.name, timeout):
        recording = record(opened, case, _PAIRS)
    for form, path in files.items():
        is_trace = form == ".json"
        write_atomically(path, perfetto_trace(recording) if is_trace else timeline_picture(recording))
        options.remark(f"trace: {path}; ui.perfetto.dev opens it" if is_trace else f"picture: {path}")
    options.show(lambda: timeline_json(recording), lambda: timeline_view(recording), json=json)


def _backend(name: str | None, quiet: bool) -> "Backend":
    """Return the named backend, else the GPU, else the emulator."""
    from prism_bench.backends import open_backend

    if name not in (None, "cuda", "emulator"):
        raise UsageError(f"--backend {name}: no kernel's code runs there; use cuda or emulator")
    if name is None:
        try:
            opened, reason = open_backend("cuda"), ""
        except BackendUnavailable as error:
            opened, reason = open_backend("emulator"), f", because {error}"
        (options.remark if quiet else options.line)(f"backend {opened.name}: {opened.facts()['device']}{reason}")
        return opened
    return options.choose_backend(name, quiet=quiet)


def _case(
    kernel: str, label: list[str] | None, backend: "Backend", catalogue: Path | None, tuned: bool | None
) -> "Case":
    """Return the one case that the words choose, by default S1 on a GPU and S0 on the emulator."""
    labels = options.chosen_labels(label, ("S1",) if backend.name == "cuda" else ("S0",))
    cases = options.open_catalogue(catalogue).cases([kernel], labels)
    if ":" not in kernel:
        cases = [case for case in cases if not case.variant] or cases
    if len(cases) != 1:
        names = ", ".join(case.name for case in cases[:5])
        raise UsageError(
            f"{kernel} names {count_text(len(cases), 'case')} with {' or '.join(labels)}; name one: {names}"
        )
    return configured(cases, backend, tuned).cases[0]
