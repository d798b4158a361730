"""Submitted items: what a caller holds until an item is served."""

import time
from collections.abc import Sequence

from prism_bench.errors import ItemFailed
from prism_bench.extensions.persistent.layout import NUMBER_BITS, error_text, number_of

SPINS = 10_000  # looks at the answer, about a millisecond, before a waiting caller begins to rest between them
REST_SECONDS = 50e-6


class Pending:
    """An item of program `name`, which has that `number`; done by an answer or by a failure."""

    __slots__ = ("name", "number", "ticket", "_place", "_failure", "_settled")

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number
        self._failure: ItemFailed | None = None
        self._settled = False

    def place(self, ticket: int, answers: Sequence[int], slot: int) -> None:
        """Make the item that ticket of the board whose answers are given."""
        self.ticket, self._place = ticket, (answers, slot, ticket << NUMBER_BITS)

    def done(self) -> bool:
        """Return whether the item has been served, or never will be."""
        answers, slot, least = self._place
        return self._settled or answers[slot] >= least

    def result(self, timeout: float | None = None) -> None:
        """Return when the item has been served.

        ItemFailed where it gave an error or was given up by the executor; TimeoutError where neither happens within
        `timeout` seconds: the item continues, and may be waited for again.
        """
        answers, slot, least = self._place
        for _ in range(SPINS):
            if answers[slot] >= least or self._settled:
                break
        if not self.done():  # by now the executor may have moved it to another board
            self._rest(timeout)
        self.settle()
        if self._failure:
            raise self._failure

    def settle(self) -> None:
        """Keep the answer before another item takes the slot."""
        if self._settled:
            return
        answers, slot, _ = self._place
        error = number_of(answers[slot])
        if error:
            self.fail(error_text(error))
        self._settled = True

    def fail(self, reason: str) -> None:
        """Mark the item as failed for that reason."""
        self._failure = ItemFailed(f"item {self.ticket} ({self.name}): {reason}")
        self._settled = True

    def _rest(self, timeout: float | None) -> None:
        limit = None if timeout is None else time.monotonic() + timeout
        while not self.done():
            if limit is not None and time.monotonic() >= limit:
                raise TimeoutError(f"item {self.ticket} ({self.name}) is not served within {timeout:g} s")
            time.sleep(REST_SECONDS)
