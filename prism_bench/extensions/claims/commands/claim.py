"""`prism-bench claim`: a speed-up as one file that anyone can replay, and its replay."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import measuring, options
from prism_bench.errors import UsageError, unknown
from prism_bench.io import files

if TYPE_CHECKING:
    from prism_bench.extensions.claims.making import ClaimMeasurement

_REFERENCES = "numpy_reference"
_DEFAULT_OUTPUT = Path("claim.json")
_OPERAND = "a record, a kernel or kernel:variant, a folder or a commit"

_BaselineArgument = Annotated[
    str,
    typer.Argument(
        help=f"Name the baseline: {_OPERAND}. Alone: the record or kernel with peers, "
        "or a claim to replay: its file, its page, or an address with https://."
    ),
]
_KernelArgument = Annotated[str | None, typer.Argument(help="Name what is claimed to be faster, likewise.")]
_CaseArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CASES]...", help="Choose the case by its name, its workload or its label."),
]
_AgainstOption = Annotated[
    str | None, typer.Option("--against", help="Compare with this peer or form; default: the fastest peer.")
]
_MetricOption = Annotated[str | None, typer.Option(help=options.METRIC)]
_SignatureOption = Annotated[
    str | None,
    typer.Option(
        "--signature",
        metavar="BY",
        help="Add a signature by minisign:KEY_FILE or sigstore; of a replayed claim, require one of "
        "minisign:PUBLIC_KEY or sigstore:IDENTITY,ISSUER.",
    ),
]
_FORMS = (".json", ".html", ".svg")  # the claim or the answer of a replay, its page, and its badge


def command(
    a: _BaselineArgument,
    b: _KernelArgument = None,
    cases: _CaseArgument = None,
    filter: options.FilterOption = None,
    against: _AgainstOption = None,
    metric: _MetricOption = None,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    processes: measuring.ProcessesOption = 5,
    trust_source: options.TrustOption = False,
    signature: _SignatureOption = None,
    output: options.OutputOption = None,
    json: options.JsonOption = False,
) -> None:
    """Write a measured speed-up as a claim, or replay a claim.

    A claim is one file with both sides' sources, launches and machine code, the reference, the samples and the
    protocol. Without records both sides are measured now, in turn. --output names its file (.json; default:
    claim.json), its page (.html) and its badge (.svg); of a replay the file has the answer, by default none.

    A claim alone is replayed: its hashes, outputs and ratio are checked on this machine. Without the GPU that it needs,
    its outputs are verified on the emulator, and the answer names what stays open. Ends with 0 where it is reproduced,
    1 where it is not or in part, 3 where that cannot be decided here.
    """
    from prism_bench.extensions.claims.checks import is_claim

    chosen = options.patterns(cases, filter)
    made_with = {"CASES": cases, "--filter": filter, "--against": against, "--metric": metric}
    replayed_with = {"--trust-source": trust_source}
    claim = next((operand for operand in (a, b) if operand and is_claim(operand)), None)
    if claim and b:
        raise UsageError(f"{claim}: it is a claim; name it alone to replay it")
    kind = "a claim to replay" if claim else "no claim to replay"
    options.refuse(made_with if claim else replayed_with, f"leave it out with {a}, which is {kind}")
    forms = options.written_forms(output, _FORMS)
    document, page, badge = (forms.get(form) for form in _FORMS)
    if claim:
        _replay(claim, backend, catalogue, processes, trust_source, signature, (document, page, badge), json=json)
        return
    if len(chosen) > 1:
        raise UsageError(f"{chosen[1]}: a claim is about one case, and {chosen[0]} is named; leave one out")
    places, case = (document or _DEFAULT_OUTPUT, page, badge), next(iter(chosen), None)
    _make(a, b, case, against, metric, backend, catalogue, processes, places, signature, json=json)


def _make(
    a: str,
    b: str | None,
    case: str | None,
    against: str | None,
    metric: str | None,
    backend: str | None,
    catalogue: Path | None,
    processes: int,
    places: tuple[Path, Path | None, Path | None],
    sign: str | None,
    *,
    json: bool,
) -> None:
    """Write the claim of these operands to the first place, its page and its badge to the others."""
    from prism_bench.extensions.claims.checks import sign as signed
    from prism_bench.extensions.claims.document import encoded
    from prism_bench.extensions.claims.making import of_builds, of_kernel, of_record, of_records
    from prism_bench.extensions.claims.page import claim_json, claim_view, show_claim

    output, page, badge = places
    are_records = _are_records((a, b), against)
    _require_feasible(places, (a, b or a), metric, sign)
    code = options.open_catalogue(catalogue)
    if are_records and b:
        claim = of_records(Path(a), Path(b), code, case=case, against=against, metric=metric)
    elif are_records:
        claim = of_record(Path(a), code, case=case, against=against, metric=metric)
    else:
        with _measurement(backend, processes, quiet=json) as measurement:
            if b:
                claim = of_builds((a, b), code, measurement, case=case, metric=metric)
            else:
                claim = of_kernel(a, code, measurement, case=case, against=against, metric=metric)
    files.write_atomically(output, encoded(claim))
    options.remark(f"claim: {output}")
    show_claim(claim, None, (page, badge), output.name)
    if sign:
        options.remark(f"signature: {signed(output, sign)}")
    options.show(lambda: claim_json(claim), lambda: claim_view(claim), json=json)


def _replay(
    claim: str,
    backend: str | None,
    catalogue: Path | None,
    processes: int,
    trust_source: bool,
    signed_by: str | None,
    places: tuple[Path | None, Path | None, Path | None],
    *,
    json: bool,
) -> None:
    """Replay the claim and write its answer, its page and its badge to the places; end with the answer's exit code."""
    from prism_bench.extensions.claims.checks import checked, fetched, is_address, require_signature
    from prism_bench.extensions.claims.document import canonical
    from prism_bench.extensions.claims.page import replay_json, replay_view, require_places, show_claim
    from prism_bench.extensions.claims.replaying import ClaimReplay

    output, page, badge = places
    require_places(places, [claim])
    content = fetched(claim)
    document, records = checked(content, claim)
    options.remark(f"signature: {require_signature(claim, content, signed_by)}")
    with files.held(), measuring.progress_bar() as report:
        known = options.open_catalogue(catalogue)
        replay = ClaimReplay(document, records, known, backend, processes, trusted=trust_source, report=report).replay()
    if output:
        files.write_atomically(output, f"{canonical(replay)}\n".encode())
    show_claim(document, replay, (page, badge), claim if is_address(claim) else Path(claim).name)
    options.show(lambda: replay_json(replay), lambda: replay_view(replay), json=json)
    raise SystemExit(replay.exit_code)


def _require_feasible(
    places: Sequence[Path | None], operands: tuple[str, str], metric: str | None, sign: str | None
) -> None:
    """Raise an error before the measurement for options that would be refused after it."""
    from prism_bench.extensions.claims.checks import require_signer
    from prism_bench.extensions.claims.page import require_places
    from prism_bench.spec.metric import MEASURED

    if metric and metric not in MEASURED:
        raise unknown("metric", metric, MEASURED)
    require_places(places, operands)
    if sign:
        require_signer(sign)


def _are_records(operands: tuple[str, str | None], against: str | None) -> bool:
    """Return whether the operands name records; raise a UsageError if they do not go together."""
    are_files = [Path(operand).is_file() for operand in operands if operand]
    if any(are_files) and not all(are_files):
        raise UsageError("one side is a record and the other is not: name two records, or measure both sides")
    if against and len(are_files) > 1 and not are_files[0]:
        raise UsageError(f"--against {against}: the baseline is {operands[0]}; name one kernel, or leave --against out")
    return are_files[0]


@contextmanager
def _measurement(backend: str | None, processes: int, *, quiet: bool) -> "Iterator[ClaimMeasurement]":
    """Yield the measurement of both sides with its progress on standard error."""
    from prism_bench.extensions.claims.making import ClaimMeasurement

    opened = options.choose_backend(backend, quiet=quiet)
    if opened.name == _REFERENCES:
        raise UsageError(
            f"{_REFERENCES} times references, not kernels: a claim is measured on a GPU; --backend null shows how"
        )
    with files.held(), measuring.progress_bar() as report:
        yield ClaimMeasurement(opened.name, processes, report=report)
