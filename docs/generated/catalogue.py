"""The catalogue: a page with all kernels, and one per family with what each spec says."""

import ast
from functools import cache
from itertools import groupby

from docs.generated.markdown import code, joined, prose, table
from prism_bench.catalogue import Catalogue, discover
from prism_bench.files import spec_file
from prism_bench.kernel import Array, KernelSpec
from prism_bench.units import bytes_text, rate_text

PATH = "reference/catalogue/index.md"


@cache
def found() -> Catalogue:
    """The built-in catalogue, read once."""
    return discover()


@cache
def pages() -> dict[str, str]:
    """The overview and a page for each family."""
    specs = sorted(found().kernels.values(), key=lambda spec: (spec.family, spec.name))
    families = {family: list(group) for family, group in groupby(specs, key=lambda spec: spec.family)}
    return {PATH: _overview(families)} | {
        f"reference/catalogue/{family}.md": _family(family, members) for family, members in families.items()
    }


def summary(spec: KernelSpec) -> str:
    """The first paragraph of what the spec's file says of itself, on one line."""
    return " ".join(_docstring(spec).split("\n\n")[0].split())


def _docstring(spec):
    return ast.get_docstring(ast.parse(spec_file(spec.source).read_text())) or ""


def _overview(families):
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


def _family(family, members):
    return joined([f"# {family}", *(_kernel(spec) for spec in members)])


def _kernel(spec):
    source = f"kernels/{spec.source.relative_to(found().folder)}"
    facts = [
        ("source", f"{code(source)}, entry {code(spec.entry)}"),
        ("also known as", ", ".join(map(code, spec.aliases))),
        ("peers", ", ".join(map(code, spec.peers))),
        ("verified, not timed", f"{len(spec.edges)} edges, {len(spec.golden)} golden data"),
        ("budgets", "; ".join(_budget(budget) for budget in spec.budgets)),
        ("fused from", ", ".join(map(code, spec.replaces))),
        ("chains", "; ".join(_chain(chain) for chain in spec.chains)),
    ]
    return joined(
        [
            f"## {code(spec.name)} {{ #{spec.name} }}",
            prose(_docstring(spec)),
            table(("", ""), [fact for fact in facts if fact[1]]),
            table(("argument", "", "shape", "dtype"), [_argument(one) for one in spec.arguments]),
            table(("case", "label", "bytes", "operations"), _cases(spec)),
            table(("variant", "what differs"), [(code(name), one.meaning) for name, one in spec.variants.items()]),
        ]
    )


def _cases(spec):
    """The kernel's own; those of variants have the same workloads."""
    return [
        (code(case.workload), case.label, bytes_text(case.sizes.bytes_moved), rate_text(case.sizes.flops, ""))
        for case in _all_cases()
        if case.spec.name == spec.name and case.variant is None
    ]


@cache
def _all_cases():
    return found().cases()


def _budget(budget):
    bound = f"at most {budget.at_most:g}" if budget.at_least is None else f"at least {budget.at_least:g}"
    return f"{code(budget.metric)} {bound}" + (f" at {budget.label}" if budget.label else "")


def _chain(chain):
    return f"{code(chain.name)} ({', '.join(chain.stages)})"


def _argument(argument):
    shape = code(argument.shape) if isinstance(argument, Array) else ""
    return code(argument.name), type(argument).__name__, shape, code(argument.dtype)
