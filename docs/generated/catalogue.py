"""The catalogue: a page with all kernels, and one per family with the facts of each spec."""

import ast
from functools import cache
from itertools import groupby
from pathlib import Path

from docs.generated.markdown import code, joined, prose, table
from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import SpecError
from prism_bench.io.files import spec_file
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import Array, Chain, KernelSpec, Scalar
from prism_bench.spec.metric import Budget
from prism_bench.units import bytes_text, rate_text

PATH = "reference/catalogue/index.md"
TIMELINES = Path(__file__).parents[2] / "reports" / "timeline"


@cache
def found() -> Catalogue:
    """Return the built-in catalogue, read once."""
    return discover()


@cache
def pages() -> dict[str, str]:
    """Return the overview and a page for each family."""
    specs = sorted(found().kernels.values(), key=lambda spec: (spec.family, spec.name))
    families = {family: list(group) for family, group in groupby(specs, key=lambda spec: spec.family)}
    return {PATH: _overview(families)} | {
        f"reference/catalogue/{family}.md": _family(family, members) for family, members in families.items()
    }


def summary(spec: KernelSpec) -> str:
    """Return the first paragraph of the docstring of the spec's file, on one line."""
    return " ".join(_docstring(spec).split("\n\n")[0].split())


def _docstring(spec: KernelSpec) -> str:
    return ast.get_docstring(ast.parse(spec_file(_source(spec)).read_text())) or ""


def _source(spec: KernelSpec) -> Path:
    if spec.source is None:
        raise SpecError(f"{spec.name} was loaded from no file")
    return Path(spec.source)


def _overview(families: dict[str, list[KernelSpec]]) -> str:
    count = sum(map(len, families.values()))
    lead = (
        f"{count} kernels in {len(families)} families, as their specs define them. "
        "`prism-bench list` has every case with its bytes and operations."
    )
    rows = [
        (f"[{family}]({family}.md)", f"[{code(spec.name)}]({family}.md#{spec.name})", prose(summary(spec)))
        for family, members in families.items()
        for spec in members
    ]
    return joined(["# Catalogue", lead, table(("family", "kernel", "what it computes"), rows)])


def _family(family: str, members: list[KernelSpec]) -> str:
    return joined([f"# {family}", *(_kernel(spec) for spec in members)])


def _kernel(spec: KernelSpec) -> str:
    source = f"kernels/{_source(spec).relative_to(found().folder)}"
    facts = [
        ("source", f"{code(source)}, entry {code(spec.entry)}"),
        ("also known as", ", ".join(map(code, spec.aliases))),
        ("peers", "; ".join(_peer(spec, name) for name in spec.peers)),
        ("no peers, though looked at", "; ".join(f"{code(name)} {why}" for name, why in spec.looked_at.items())),
        ("verified, not timed", f"{len(spec.edges)} edges, {len(spec.golden)} golden data"),
        ("budgets", "; ".join(_budget(budget) for budget in spec.budgets)),
        ("kept to compare with", code(spec.before) if spec.before else ""),
        ("fused from", ", ".join(map(code, spec.replaces))),
        ("chains", "; ".join(_chain(chain) for chain in spec.chains)),
    ]
    return joined(
        [
            f"## {code(spec.name)} {{ #{spec.name} }}",
            prose(_docstring(spec)),
            _timeline(spec),
            table(("", ""), [fact for fact in facts if fact[1]]),
            table(("argument", "", "shape", "dtype"), [_argument(one) for one in spec.arguments]),
            table(("case", "label", "bytes", "operations"), _cases(spec)),
            table(("variant", "what differs"), [(code(name), one.meaning) for name, one in spec.variants.items()]),
        ]
    )


def _timeline(spec: KernelSpec) -> str:
    """Return the pictures of the kernel and its variants at work, which `scripts/timelines` drew; empty without one."""
    names = [path.stem for path in sorted(TIMELINES.glob("*.png")) if path.stem.partition("-")[0] == spec.name]
    if not names:
        return ""
    shown = "By [regions](../../guides/timeline.md) in a copy of its source, what its warps do when:"
    return joined([shown, *(f"![{name}: warps of a multiprocessor](../../pictures/{name}.png)" for name in names)])


def _peer(spec: KernelSpec, name: str) -> str:
    """Return the peer's name, and in words whether it is a poor way or does other work than the kernel."""
    peer = spec.peer(name)
    remarks = [f"poor way: {peer.poor}" if peer.poor else None, peer.work]
    words = ", ".join(filter(None, remarks))
    return f"{code(name)} ({words})" if words else code(name)


def _cases(spec: KernelSpec) -> list[tuple[str, ...]]:
    """Return the rows of the kernel's own cases; those of variants have the same workloads."""
    return [
        (code(case.workload), case.label, bytes_text(case.sizes.bytes_moved), rate_text(case.sizes.flops, ""))
        for case in _all_cases()
        if case.spec.name == spec.name and case.variant is None
    ]


@cache
def _all_cases() -> list[Case]:
    return found().cases()


def _budget(budget: Budget) -> str:
    bound = f"at most {budget.at_most:g}" if budget.at_least is None else f"at least {budget.at_least:g}"
    return f"{code(budget.metric)} {bound}" + (f" at {budget.label}" if budget.label else "")


def _chain(chain: Chain) -> str:
    return f"{code(chain.name)} ({', '.join(chain.stages)})"


def _argument(argument: Array | Scalar) -> tuple[str, ...]:
    shape = code(argument.shape) if isinstance(argument, Array) else ""
    return code(argument.name), type(argument).__name__, shape, code(argument.dtype)
