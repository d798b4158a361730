"""Work on a stream as one CUDA graph."""

from collections.abc import Callable


def captured(stream, call: Callable[[], None], times: int = 1) -> Callable[[], None]:
    """What replays the work that `call`, called so many times, enqueues on the CuPy stream.

    A call that raises ends the capture too: a stream left in it would record what comes next and run none of it.
    """
    stream.synchronize()
    stream.begin_capture()
    try:
        for _ in range(times):
            call()
    finally:
        graph = stream.end_capture()
    graph.upload(stream)
    return lambda: graph.launch(stream)
