"""Functions of the device headers that programs may call, each with its float64 form in kernels/include."""

from prism_bench.extensions.fusion.expression import Function, FunctionChoice, SharedName

divergence = Function(
    "divergence",
    "GaussianDivergence<{T}>{{}}",
    "entropy/gaussian.cuh",
    SharedName("entropy.gaussian", "divergence"),
    arity=4,
    flops=7,
)
log_likelihood = Function(
    "log_likelihood", "LogLikelihood<{T}>{{}}", "entropy/gaussian.cuh",
    SharedName("entropy.gaussian", "log_likelihood"), size=SharedName("entropy.gaussian", "likelihood_size"),
    arity=2, flops=6,
)  # fmt: skip


psi = Function(  # of a whole number
    "psi", "digamma_of", "neighbours/ksg.cuh", SharedName("neighbours.neighbours", "psi", ("special",)),
    size=SharedName("neighbours.neighbours", "psi_size", ("special",)), flops=30,
)  # fmt: skip


def _activation(name: str, cuda: str, flops: int, stretch: float = 1.0, at_zero: float = 0.0) -> Function:
    value = SharedName("layers.activations", name, ("xp", "special"))
    return Function(
        name, f"{cuda}{{{{}}}}", "layers/activations.cuh", value, stretch=stretch, at_zero=at_zero, flops=flops
    )


identity = _activation("identity", "Identity", 0)
relu = _activation("relu", "Relu", 1)
sigmoid = _activation("sigmoid", "Sigmoid", 4, stretch=0.25, at_zero=0.5)
tanh = _activation("tanh", "Tanh", 5)
gelu = _activation("gelu", "Gelu", 9, stretch=1.13)
activation = FunctionChoice("activation", {one.name: one for one in (gelu, identity, relu, sigmoid, tanh)})
