"""Operators of a torch peer: which of the library's operators one eager call runs, and what kind of work they do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

# Operators without a kernel that their schema does not mark as views.
_METADATA = frozenset(
    ("_unsafe_view", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "is_same_size",
     "resize_", "record_stream", "set_")
)  # fmt: skip
_PRODUCTS = frozenset(
    ("mm", "bmm", "addmm", "addmm_", "baddbmm", "addbmm", "_scaled_mm", "linear", "_addmm_activation", "convolution",
     "_convolution", "cudnn_convolution", "cudnn_convolution_relu", "cudnn_convolution_add_relu", "_grouped_mm")
)  # fmt: skip
_VECTOR_PRODUCTS = frozenset(("mv", "addmv"))
_NORMS = frozenset(
    ("native_layer_norm", "native_batch_norm", "native_group_norm", "cudnn_batch_norm", "_native_batch_norm_legit",
     "_native_batch_norm_legit_no_training", "_batch_norm_with_update", "_batch_norm_no_update", "rms_norm",
     "_fused_rms_norm", "_softmax", "_log_softmax", "_safe_softmax")
)  # fmt: skip
_ATTENTION = ("scaled_dot_product", "_flash_attention", "_efficient_attention", "_cudnn_attention")


@dataclass(frozen=True)
class Operators:
    """Names of the operators that one call runs, in order, without views and without what only allocates.

    `without_tensor_cores` is whether one of them is a product of matrices that tensor cores do not take: in float64, or
    in float32 where TF32 is not allowed.
    """

    names: tuple[str, ...]
    without_tensor_cores: bool = False

    @property
    def calls(self) -> int:
        """How many operators there are."""
        return len(self.names)

    @property
    def gains_by_autotuning(self) -> bool:
        """Whether there is a product, a norm or attention among them, for which max-autotune has several kernels.

        Products without tensor cores are excluded: Inductor takes about half a minute for each and finds nothing faster
        than the library's kernel (within 0.3 % of it on an H200, 2026-11-22).
        """
        return not self.without_tensor_cores and any(map(_gains, self.names))


def _gains(name: str) -> bool:
    known = name in _PRODUCTS or name in _VECTOR_PRODUCTS or name in _NORMS
    return known or any(part in name for part in _ATTENTION)


def operators_of(torch: ModuleType, call: Callable[[], object]) -> Operators:
    """Run `call` once, eagerly, and return the operators that PyTorch dispatched for it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    names: list[str] = []
    products: list[bool] = []

    class OperatorTrace(TorchDispatchMode):
        """Notes each operator and runs it."""

        def __torch_dispatch__(
            self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            if _works(func):
                names.append(func.overloadpacket.__name__)
                products.extend([_without_tensor_cores(torch, args)] if names[-1] in _PRODUCTS else [])
            return func(*args, **(kwargs or {}))

    with OperatorTrace():
        call()
    return Operators(tuple(names), any(products))


def _without_tensor_cores(torch: ModuleType, arguments: tuple[Any, ...]) -> bool:
    """Return whether tensor cores do not take the operands of a product as the library's flags are now."""
    types = {argument.dtype for argument in arguments if isinstance(argument, torch.Tensor)}
    wide = {torch.float64, torch.complex64, torch.complex128}
    if not torch.backends.cuda.matmul.allow_tf32:
        wide.add(torch.float32)
    return bool(types & wide)


def _works(operator: Any) -> bool:
    """Return whether an operator has work for the device: a view shares its argument's memory and has none."""
    if operator.namespace == "prim" or operator.overloadpacket.__name__ in _METADATA:
        return False
    returns = operator._schema.returns
    return not any(value.alias_info is not None and not value.alias_info.is_write for value in returns)
