"""The callable of a spec as it runs; the callable of another language's form is read again, with its real imports."""

from prism_bench.compilation.languages.child import real_module
from prism_bench.errors import SpecError
from prism_bench.spec.kernel import CUDA, KernelSpec, Variant
from prism_bench.spec.peer import KernelCall, as_call


def real_call(spec: KernelSpec) -> KernelCall:
    """Return the callable of a spec; raise CompilationFailed if its file cannot be imported here."""
    if spec.callable is None:
        raise SpecError(f"{spec.label_in_errors} has no callable")
    if spec.language == CUDA:
        return as_call(spec.callable)
    declared = getattr(real_module(spec.source_file), "variant", None)
    call = declared.changes.get("callable") if isinstance(declared, Variant) else None
    if call is None:
        raise SpecError(f"{spec.source_file}: its variant has no callable where it is imported")
    return as_call(call)
