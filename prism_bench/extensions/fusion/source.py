"""The CUDA source of a program: a kernel for each of its forms, and one for each stage on its own."""

from collections.abc import Sequence
from dataclasses import dataclass

from prism_bench.errors import SpecError
from prism_bench.extensions.fusion import columns, neighbours, products, rows, sums
from prism_bench.extensions.fusion.kernel_code import KernelCode
from prism_bench.extensions.fusion.plan import FusionPlan, planned
from prism_bench.extensions.fusion.program import FusionProgram
from prism_bench.extensions.fusion.refusals import refuse
from prism_bench.extensions.fusion.separate import SeparateForm, separated
from prism_bench.extensions.fusion.stages import ColumnSums, Product, RowDots, Stage

_BY = "by `prism-bench fuse` from {}.py: change that and run it again."


@dataclass(frozen=True)
class FusedForm:
    """One form of a program: its plan, its generated kernel, and its stages in separate launches where it has them."""

    plan: FusionPlan
    code: KernelCode
    separate: SeparateForm | None = None


@dataclass(frozen=True)
class FusedProgram:
    """A program called `name`, whose kernel is `main`; `forms` are those of other stages."""

    name: str
    program: FusionProgram
    main: FusedForm
    forms: dict[str, FusedForm]

    def source(self) -> str:
        """Return the CUDA source."""
        every = [self.main, *self.forms.values()]
        separate = [one.code for one in self.main.separate.launches] if self.main.separate else []
        headers = {header for code in (*(one.code for one in every), *separate) for header in code.headers}
        includes = "\n".join(f'#include "{header}"' for header in sorted(headers, key=_file_name))
        kernels = [
            f"// Stages: {', '.join(one.name for one in form.plan.stages)}.\n{form.code.kernels}" for form in every
        ]
        if separate:
            kernels += ["// Every stage in a separate launch.", *(code.kernels for code in separate)]
        return f"// Written {_BY.format(self.name)}\n{includes}\n\n" + "\n\n".join(kernels) + "\n"


def _file_name(header: str) -> str:
    """Return the name without its subject's folder: moving a header leaves the order, and so the code, as it is."""
    return header.rpartition("/")[2]


def fused_program(program: FusionProgram, name: str) -> FusedProgram:
    """Return the forms of a program; a SpecError with the reason where one cannot be fused."""
    main = _form(program, None, f"{name}_generated")
    forms = {key: _form(program, one.stages, f"{name}_generated_{key}") for key, one in program.forms.items()}
    with_steps = FusedForm(main.plan, main.code, separated(program, name))
    return FusedProgram(name, program, with_steps, forms)


def _form(program: FusionProgram, stages: Sequence[Stage] | None, entry: str) -> FusedForm:
    plan = planned(program, stages)
    refuse(plan)
    return FusedForm(plan, written(plan, entry))


def written(plan: FusionPlan, entry: str) -> KernelCode:
    """Return the kernel of a plan, by the stage that walks its matrix; maps and reductions alone walk vectors."""
    tiled = plan.tiled
    in_double = "float64" in plan.program.numbers
    for stage in [*([tiled] if isinstance(tiled, RowDots | Product) else []), *plan.scans] if in_double else []:
        raise SpecError(f"stage '{stage.name}' comes in float32 and, on tensor cores, less; not in float64")
    if plan.scans:
        return neighbours.write(plan, entry)
    if isinstance(tiled, ColumnSums):
        return columns.write(plan, tiled, entry)
    if isinstance(tiled, RowDots):
        return rows.write(plan, tiled, entry)
    return products.write(plan, tiled, entry) if isinstance(tiled, Product) else sums.write(plan, entry)
