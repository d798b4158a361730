"""A fleet while it is used: its workers, the jobs that they have, and the events that come from them."""

import uuid
from collections.abc import Generator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.fleet.board import BoardClaim, SeenWorker
from prism_bench.extensions.fleet.cluster import connected, described
from prism_bench.extensions.fleet.job import TOPIC, JobOrder, carry_out, look, stop
from prism_bench.extensions.fleet.spec import FleetSpec

LOOK_SECONDS = 0.5  # between two looks at which workers there are
WAIT_SECONDS = 120  # for the first worker


@dataclass(frozen=True)
class JobMessage:
    """What arrived of a job: an `event` on the way, or that its `future` is over."""

    number: int
    event: dict[str, Any] = field(default_factory=dict[str, Any])
    future: Any = None


def is_loss(error: object) -> bool:
    """Return whether a job failed since its worker is gone: Dask's own errors, under any name, and cancelled jobs."""
    return isinstance(error, CancelledError) or type(error).__module__.partition(".")[0] in ("dask", "distributed")


def failure(future: Any) -> BaseException | None:
    """Return the error of a job that is over; a scheduler that is gone cannot hand it out, and that is the error."""
    try:
        return future.exception()
    except Exception as error:
        return error


class Fleet:
    """Workers of one scheduler, used by one run."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._messages: SimpleQueue[JobMessage] = SimpleQueue()
        self._numbers = 0
        with self._answering("the scheduler of the fleet takes no messages"):
            self._begin()

    def addresses(self) -> set[str]:
        """Return the addresses of the workers that the scheduler has now; BackendUnavailable where it is gone."""
        with self._answering("the scheduler of the fleet does not answer any more"):
            return set(self._client.nthreads())

    def wait(self) -> None:
        """Wait for the first worker; a BackendUnavailable where none comes."""
        with self._answering("the scheduler of the fleet was lost before it had a worker"):
            try:
                self._client.wait_for_workers(1, timeout=WAIT_SECONDS)
            except TimeoutError:
                raise BackendUnavailable(
                    f"the scheduler has no worker after {WAIT_SECONDS} s; start one for each GPU: 'dask worker ADDRESS "
                    "--nthreads 1'"
                ) from None

    def seen(self, addresses: Sequence[str]) -> list[SeenWorker]:
        """Return what the workers at the addresses are and see, in the order of hosts and names."""
        with self._answering("the workers cannot be asked what they are"):
            found = self._client.run(look, workers=list(addresses), on_error="return")
        wrong = {address: one for address, one in found.items() if isinstance(one, BaseException)}
        if wrong:
            listed = "; ".join(f"{address}: {type(one).__name__}: {one}" for address, one in wrong.items())
            raise BackendUnavailable(f"workers that cannot run prism-bench: {listed}; install this version of it there")
        seen = [
            SeenWorker(address, one["host"], one["name"], tuple(one["gpus"]), tuple(one["cores"]))
            for address, one in found.items()
        ]
        return sorted(seen, key=lambda one: (one.host, len(one.name), one.name))

    def submit(self, claim: BoardClaim, call: str, work: dict[str, Any]) -> tuple[int, Any]:
        """Give a job to the worker of the claim; return its number and its future."""
        self._numbers += 1
        number = self._numbers
        order: JobOrder = {
            "run": self.run, "number": number, "call": call, "gpu": claim.gpu, "cores": list(claim.cores), "work": work,
        }  # fmt: skip
        with self._answering("the scheduler of the fleet takes no job any more"):
            future = self._client.submit(
                carry_out, order, workers=[claim.worker.address], key=f"prism-bench-{self.run}-{number}", pure=False,
                retries=0,
            )  # fmt: skip
        future.add_done_callback(lambda done: self._messages.put(JobMessage(number, future=done)))
        return number, future

    def answers(
        self, claims: Sequence[BoardClaim], call: str, work: dict[str, Any]
    ) -> list[dict[str, Any] | BaseException]:
        """Give the same job to all workers; return what each answers, or how it failed."""
        numbers = [self.submit(claim, call, work) for claim in claims]
        found: dict[int, dict[str, Any] | BaseException] = {}
        aside: list[JobMessage] = []
        while len(found) < len(numbers):
            live = self.addresses()
            for (number, _), claim in zip(numbers, claims, strict=True):
                if claim.worker.address not in live:
                    found.setdefault(number, BackendUnavailable("the worker was lost"))
            for message in self.messages(LOOK_SECONDS):
                if message.number not in dict(numbers):
                    aside.append(message)
                elif "result" in message.event:
                    found.setdefault(message.number, message.event["result"])
                elif message.future is not None and not message.future.cancelled():
                    error = failure(message.future)
                    if error is not None:
                        found.setdefault(message.number, error)
        for message in aside:
            self._messages.put(message)
        for _, future in numbers:
            future.cancel()
        return [found[number] for number, _ in numbers]

    def messages(self, seconds: float) -> list[JobMessage]:
        """Return what has arrived, after waiting so many seconds for the first message."""
        found: list[JobMessage] = []
        try:
            found.append(self._messages.get(timeout=seconds))
            while True:
                found.append(self._messages.get_nowait())
        except Empty:
            return found

    def stop(self) -> None:
        """Let the jobs so far end at their next event; workers that are gone need not be asked."""
        with suppress(BackendUnavailable), self._answering("the fleet cannot be stopped"):  # gone: it has no jobs
            self._client.run(stop, self.run, on_error="ignore")
            self._begin()

    @contextmanager
    def _answering(self, words: str) -> Generator[None]:
        """Turn every error of the client into a BackendUnavailable with these words."""
        try:
            yield
        except BackendUnavailable:
            raise
        except Exception as error:
            raise BackendUnavailable(f"{words}: {described(error)}") from error

    def _begin(self) -> None:
        """Give the jobs from here on a name, by which they can be ended together."""
        self.run = uuid.uuid4().hex
        self._client.subscribe_topic(f"{TOPIC}-{self.run}", self._take)

    def _take(self, event: tuple[float, dict[str, Any]]) -> None:
        _, message = event
        self._messages.put(JobMessage(message["number"], event=message))


@contextmanager
def opened(spec: FleetSpec, needs_gpu: bool) -> Generator[Fleet]:
    """Yield the fleet, which has a worker at least."""
    with connected(spec, needs_gpu) as client:
        fleet = Fleet(client)
        fleet.wait()
        yield fleet
