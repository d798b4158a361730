"""The spec of a fused kernel, made of its program: arguments, launch, reference, tolerance, variants."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prism_bench.errors import SpecError
from prism_bench.extensions.fusion import separate
from prism_bench.extensions.fusion.asking import Asking
from prism_bench.extensions.fusion.expression import SharedName
from prism_bench.extensions.fusion.includes import Includes
from prism_bench.extensions.fusion.kernel_code import EntryCall
from prism_bench.extensions.fusion.plan import FusionPlan
from prism_bench.extensions.fusion.products import tensor_entry
from prism_bench.extensions.fusion.program import ByHand, FusionProgram, Input
from prism_bench.extensions.fusion.references import reference, sizes
from prism_bench.extensions.fusion.source import FusedForm, FusedProgram, fused_program
from prism_bench.extensions.fusion.stages import AS_BITS, Product
from prism_bench.extensions.fusion.work import operations
from prism_bench.io.files import GENERATED
from prism_bench.spec.arguments import Array, In, InOut, Out, Scalar
from prism_bench.spec.inputs import Fill
from prism_bench.spec.kernel import Chain, KernelSpec, Rule, Variant
from prism_bench.spec.metric import Budget
from prism_bench.spec.peer import Peer, as_peer
from prism_bench.spec.tolerance import Tolerance, normwise, product, reduction

FLOAT = "float32"


class SourceOutdated(SpecError):
    """A generated source is missing, or is not what its program generates.

    The program changed, or the generator did, after `prism-bench fuse` last wrote the source. Run it again.
    """

    def __init__(self, words: str, program: FusionProgram) -> None:
        super().__init__(words)
        self.program = program


def fuse(program: FusionProgram, module: str) -> KernelSpec:
    """Return the spec of a program in the spec file that is loaded as `module`: `spec = fuse(program, __name__)`.

    Its source is generated/<name>.cu in the family's folder. SourceOutdated where that is not the program's;
    SpecError with the reason where the program cannot be fused.
    """
    path = Path(str(sys.modules[module].__file__))
    made = fused_program(program, path.stem)
    source = generated_source(path)
    if not source.is_file() or source.read_text() != made.source():
        state = "is not what its program generates" if source.is_file() else "is not written yet"
        raise SourceOutdated(f"{GENERATED}/{source.name} {state}; `prism-bench fuse {path.stem}` writes it", program)
    includes = Includes(module.rpartition(".")[0].rpartition(".")[0])
    return FusedSpec(made, path, includes).spec()


def generated_source(path: Path) -> Path:
    """Return where the source of the program in this spec file is."""
    return path.parent / GENERATED / f"{path.stem}.cu"


@dataclass(frozen=True)
class FusedSpec:
    """Builds the spec of a program declared in the file `path` of a catalogue whose shared Python is `includes`."""

    fused: FusedProgram
    path: Path
    includes: Includes

    @property
    def program(self) -> FusionProgram:
        """The program."""
        return self.fused.program

    @property
    def plan(self) -> FusionPlan:
        """The plan of the kernel itself."""
        return self.fused.main.plan

    @property
    def product(self) -> Product | None:
        """The product that the kernel is made around, if there is one."""
        return self.plan.tiled if isinstance(self.plan.tiled, Product) else None

    def spec(self) -> KernelSpec:
        """Return the spec with its variants."""
        program, main = self.program, self.fused.main
        steps = main.separate
        name = self.fused.name
        chains = (Chain(name, {"baseline": separate.VARIANT, "full": None}, tuple(steps.between)),) if steps else ()
        return KernelSpec(
            entry=f"{name}_generated", **self._of_form(main, FLOAT), parameters=self._parameters(),
            derived=main.code.host.derived(FLOAT, self.includes),
            rules=(*([self._shared("products.gemm_tile", "PRODUCT_RULE")] if self.product else []), *self._rules()),
            peers=self.program.peers, workloads=program.workloads, edges=program.edges, golden=program.golden,
            aliases=program.aliases, replaces=program.replaces, chains=chains,
            traffic_factor=None if self.plan.scans else 4.0, budgets=self._budgets(), variants=self._variants(),
            source=generated_source(self.path),
        )  # fmt: skip

    def _shared(self, module: str, name: str) -> Any:
        return self.includes.value(module, name)

    def _of_form(self, form: FusedForm, number: str) -> dict[str, Any]:
        """Return the fields that depend on a form's stages."""
        return {
            "arguments": self._arguments(form, number), "launch": self._launch(form, number),
            "reference": reference(form.plan, self.includes), "tolerance": self._tolerance(form, number),
            "flops": operations(form.plan),
        }  # fmt: skip

    def _launch(self, form: FusedForm, number: str, by: ByHand | None = None) -> Callable[..., Any]:
        """Return the launch of the form, or of the hand-written entry that takes its place."""
        call = EntryCall(number, by.entry, by.arguments) if by else EntryCall(number, form.code.entry)
        return form.code.host.launch(call, self.includes)

    def _arguments(self, form: FusedForm, number: str) -> tuple[Array | Scalar, ...]:
        host, kind = form.code.host, FLOAT if self.product else number
        scalars = tuple(Scalar(name, kind) for name in form.plan.scalars)
        return (*self._arrays(form.plan, number), *host.scratch(kind, self.includes), *scalars, *host.sizes)

    def _arrays(self, plan: FusionPlan, number: str) -> tuple[Array, ...]:
        """Return inputs and outputs; those of a product in its precision, all else of it in float32."""
        kind = FLOAT if self.product else number
        inputs = tuple(self._input(plan, one, number) for one in plan.inputs)
        written = (name for name in plan.outputs if name not in plan.overwritten)
        return (*inputs, *(Out(name, " ".join(plan.axes[name]) or "1", kind) for name in written))

    def _input(self, plan: FusionPlan, one: Input, number: str) -> Array:
        if self.product and one.name in (self.product.left, self.product.right):
            return self._shared("products.fused_product", "operand")(one.name, one.shape, number)
        array, kind = InOut if one.name in plan.overwritten else In, FLOAT if self.product else number
        fill = self._shared(one.fill.module, one.fill.name) if isinstance(one.fill, SharedName) else one.fill
        return array(one.name, one.shape, kind, fill) if isinstance(fill, Fill) else array(one.name, one.shape, kind)

    def _tolerance(self, form: FusedForm, number: str) -> Tolerance | Mapping[str, Tolerance]:
        found = sizes(form.plan, self.includes)
        if not self.product:
            rounding = self._shared("arrays.map_arrays", "ROUNDING")[number]
            return {output: reduction(size, terms=rounding) for output, size in found.items()}
        (size,) = found.values()
        depth = Asking((form.plan.axes[self.product.left][1],), lambda extent: extent + 8)
        if number != FLOAT:
            return normwise(self._shared("products.fused_product", "ELEMENTS")[number][3], size, depth)
        return product(size, depth)

    def _parameters(self) -> dict[str, object]:
        plan, found = self.plan, dict[str, object]({"tile": "auto"} if self.product else {})
        found |= self.program.scalars
        found |= {choice.parameter: choice.default for choice in plan.choices}
        found |= {"reduce": plan.chosen.hows[0]} if plan.chosen else {}
        return found | ({"k": plan.nearest.k} if plan.nearest else {})

    def _rules(self) -> list[Rule]:
        """Return what scalars and choices must keep."""
        plan = self.plan
        found = [
            Rule(f"a finite {name}", Asking((name,), lambda value: abs(value) < float("inf"))) for name in plan.scalars
        ]
        found += [_one_of(choice.parameter, tuple(choice.functions)) for choice in plan.choices]
        if plan.nearest:
            axis = plan.axes[plan.nearest.name][0]
            found.append(Rule(f"1 <= k < {axis} and k <= 64", Asking((axis, "k"), lambda n, k: 1 <= k < n and k <= 64)))
        for width in (width for name in plan.clouds for width in plan.axes[name][1:]):
            found.append(Rule(f"{width} from 1 to 8", Asking((width,), lambda extent: 1 <= extent <= 8)))
        return [*found, *([_one_of("reduce", plan.chosen.hows)] if plan.chosen else [])]

    def _budgets(self) -> tuple[Budget, ...]:
        if self.plan.scans:
            return ()
        metric = "peer_ratio" if self.product else "bandwidth_share"
        return tuple(Budget(metric, at_least=0.85, label=label) for label in ("S1", "S2"))

    def _variants(self) -> dict[str, Variant]:
        program, main, found = self.program, self.fused.main, dict[str, Variant]()
        for key, form in self.fused.forms.items():
            changes = {**self._of_form(form, FLOAT), "golden": (), "budgets": (), "only_labels": ("S0",)}
            found[key] = Variant(program.forms[key].meaning, **changes)
        if "float64" in program.numbers:
            found["f64"] = self._in_double()
        if main.separate:
            found[separate.VARIANT] = self._separate(main.separate)
        if program.by_hand:
            launch = self._launch(main, FLOAT, program.by_hand)
            found["by_hand"] = Variant("hand-written", source=self._by_hand, launch=launch)
        if product := self.product:
            for precision in product.precisions[1:]:
                found |= self._on_tensor_cores(product, precision)
        return found

    @property
    def _by_hand(self) -> Path:
        """The hand-written source."""
        return self.path.with_suffix(".cu")

    def _in_double(self) -> Variant:
        main, changes = self.fused.main, dict[str, object]()
        derived = main.code.host.derived("float64", self.includes)
        changes |= {"derived": derived} if derived else {}
        changes |= {} if "S1" in self.program.workloads else {"only_labels": tuple(self.program.workloads)}
        of_number = (
            lambda number: self._arguments(main, number),
            lambda number: self._launch(main, number),
            lambda number: self._tolerance(main, number),
        )
        return self._shared("arrays.map_arrays", "in_double")(*of_number, **changes)

    def _separate(self, form: separate.SeparateForm) -> Variant:
        """Return the variant in which every stage is a separate launch."""
        scalars = (Scalar(name, FLOAT) for name in self.plan.scalars)
        workspace = (*form.between_launches(FLOAT), *form.scratch(FLOAT, self.includes))
        return Variant(
            "every stage in a separate launch",
            arguments=(*self._arrays(self.plan, FLOAT), *workspace, *scalars, *form.sizes),
            launch=form.launch(FLOAT, self.includes), derived=form.derived(FLOAT, self.includes), golden=(), budgets=(),
            before=self.fused.name,
        )  # fmt: skip

    def _on_tensor_cores(self, stage: Product, precision: str) -> dict[str, Variant]:
        """Return the variants with operands of that precision: the generated one, and the hand-written one for half."""
        program, main = self.program, self.fused.main
        changes = self._tensor_changes(stage, precision)
        entry = tensor_entry(main.plan, main.code.entry.partition("<")[0])
        changes["launch"] = self._launch(main, precision, ByHand(entry))
        meaning = f"tensor cores, {precision} operands, float32 sums"
        found = {precision: Variant(meaning, **changes, peers=self._tensor_peers(precision))}
        if precision == "float16" and program.by_hand and program.by_hand.tensor:
            changes |= {
                "launch": self._launch(main, precision, ByHand(program.by_hand.tensor, program.by_hand.arguments))
            }
            changes |= {"source": self._by_hand, "peers": {}}
            found[f"{precision}_by_hand"] = Variant("hand-written, on the tensor cores", **changes)
        return found

    def _tensor_changes(self, stage: Product, precision: str) -> dict[str, Any]:
        (rows, depth), columns = self.plan.axes[stage.left], self.plan.axes[stage.right][1]
        edges = tuple(edge for edge in self.program.edges if "tile" not in edge)
        labels = (label for label in self.program.workloads if precision == "float16" or label != "S2")
        return {
            "arguments": self._arguments(self.fused.main, precision),
            "rules": (self._shared("tensor_cores.tensor_tile", "TENSOR_RULE"), *self._rules()),
            "tolerance": self._tolerance(self.fused.main, precision),
            "arithmetic": self._shared("products.fused_product", "arithmetic_of")(precision),
            "edges": (*edges, *self._shared("products.fused_product", "tensor_edges")(precision, rows, columns, depth)),
            "golden": (), "budgets": (), "requires": self._shared("tensor_cores.tensor_tile", "required"),
            "only_labels": tuple(labels),
        }  # fmt: skip

    def _tensor_peers(self, precision: str) -> Mapping[str, Peer | Callable[..., Any]]:
        """Return the peers with operands of that precision; PyTorch takes no matrices of bits."""
        peers = self.program.peers
        if precision in AS_BITS:
            return {}
        if precision != "tf32":
            return peers
        in_tf32, of_torch = self.includes.peer("torch_peers", "in_tf32"), {n: as_peer(one) for n, one in peers.items()}
        return {n: replace(one, call=in_tf32(one.call)) for n, one in of_torch.items() if one.library.name == "torch"}


def _one_of(parameter: str, known: tuple[str, ...]) -> Rule:
    return Rule(f"{parameter} is one of {', '.join(known)}", Asking((parameter,), lambda value: value in known))
