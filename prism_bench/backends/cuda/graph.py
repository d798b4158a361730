"""Work on a stream as one CUDA graph."""

from collections.abc import Callable, Sequence
from typing import Any

from prism_bench.backends.cuda.driver import captured_nodes
from prism_bench.errors import MeasurementInvalid


def captured(
    stream: Any, call: Callable[[], object], times: int = 1, counts: list[int | None] | None = None
) -> Callable[[], None]:
    """Return a function that replays what `times` calls of `call` enqueue on the CuPy stream.

    How many nodes the graph had before and after each call is added to `counts`.
    A call that raises ends the capture too: a stream left in it would record what comes next and run none of it.
    """
    stream.synchronize()
    stream.begin_capture()
    try:
        nodes = nodes_of_calls(stream.ptr, call, times)
    finally:
        graph = stream.end_capture()
    if counts is not None:
        counts += nodes
    refuse_idle_calls(nodes)
    graph.upload(stream)
    return lambda: graph.launch(stream)


def nodes_of_calls(stream: int, call: Callable[[], object], times: int) -> list[int | None]:
    """Call `call` so many times while `stream` is captured; return how many nodes the graph had before and after each.

    The count is None if the driver does not report it.
    """
    nodes = [captured_nodes(stream)]
    for _ in range(times):
        call()
        nodes.append(captured_nodes(stream))
    return nodes


def work_items(nodes: Sequence[int | None]) -> int | None:
    """Return how many nodes a call adds to a graph; None where the driver does not report it, or calls differ."""
    known = [count for count in nodes if count is not None]
    added = {after - before for before, after in zip(known, known[1:], strict=False)}
    return added.pop() if len(added) == 1 else None


def refuse_idle_calls(nodes: Sequence[int | None]) -> None:
    """Raise MeasurementInvalid where a call enqueued nothing into the graph: a replay would not do its work."""
    known = [count for count in nodes if count is not None]
    calls = len(nodes) - 1
    idle = sum(before == after for before, after in zip(known, known[1:], strict=False))
    if idle:
        raise MeasurementInvalid(f"the call enqueues nothing in {idle} of {calls} calls while a CUDA graph is captured")
