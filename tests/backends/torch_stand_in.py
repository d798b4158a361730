"""A stand-in for PyTorch with Dynamo's counters, for machines without PyTorch: what it compiles is scripted."""

import sys
from collections import Counter, defaultdict
from contextlib import nullcontext
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace


class TorchDynamoException(Exception):
    """A graph breaks though it should be whole."""


class RecompileError(Exception):
    """Something would be compiled again."""


class Benchmarker:
    """Times what Inductor chooses from."""

    def benchmark_gpu(self, call, repeats=1):
        return [call() for _ in range(repeats)]


class StandIn:
    """Compiles by `how`: "whole", "in parts", "eager" (nothing, silently), "fails", or "again" from the third call."""

    def __init__(self, how):
        self.how, self.counters, self.patched, self.resets = how, defaultdict(Counter), [], 0
        self.compiled = []

    def compile(self, function, *, dynamic, fullgraph, mode):
        self.compiled.append((dynamic, fullgraph, mode))
        calls = []

        def call(**arguments):
            calls.append(1)
            self._count(len(calls), fullgraph)
            return function(**arguments)

        return call

    def _count(self, calls, fullgraph):
        if self.how == "fails":
            raise ValueError("no such shape")
        if self.how == "in parts" and fullgraph:
            raise TorchDynamoException
        if self.how != "eager" and (calls == 1 or (self.how == "again" and calls > 2)):
            self.counters["stats"]["unique_graphs"] += 1
            self.counters["stats"]["calls_captured"] += 1
            self.counters["graph_break"]["print"] += self.how == "in parts"

    def reset(self):
        self.resets += 1

    def patch(self, **values):
        self.patched.append(values)
        return nullcontext()


def install(monkeypatch, how="whole"):
    """Make the stand-in what `import torch` finds; return it."""
    stand_in = StandIn(how)
    config = SimpleNamespace(patch=stand_in.patch)
    errors = SimpleNamespace(
        TorchDynamoException=TorchDynamoException, RecompileError=RecompileError, FailOnRecompileLimitHit=RecompileError
    )
    dynamo = SimpleNamespace(config=config, exc=errors, reset=stand_in.reset)
    flag = SimpleNamespace(allow_tf32=True)
    torch = ModuleType("torch")
    torch.__spec__, torch.__version__ = ModuleSpec("torch", None), "2.11.0"
    torch.backends = SimpleNamespace(cuda=SimpleNamespace(matmul=flag), cudnn=flag)
    torch.cuda = SimpleNamespace(set_stream=lambda stream: None, ExternalStream=lambda pointer: pointer,
                                 empty_cache=lambda: None)  # fmt: skip
    torch.float16, torch.zeros = "float16", lambda shape, dtype, device: None
    torch.nn = SimpleNamespace(functional=SimpleNamespace(scaled_dot_product_attention=lambda q, k, v: None))
    torch.set_grad_enabled, torch.as_tensor = lambda enabled: None, lambda array, device: array
    torch._dynamo, torch.compile = dynamo, stand_in.compile
    modules = {"torch": torch, "torch._dynamo": dynamo, "torch._dynamo.config": config, "torch._dynamo.exc": errors,
               "torch._dynamo.utils": SimpleNamespace(counters=stand_in.counters),
               "torch._inductor.config": config,
               "torch._inductor.runtime.benchmarking": SimpleNamespace(benchmarker=Benchmarker())}  # fmt: skip
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return stand_in
