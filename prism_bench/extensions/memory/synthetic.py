"""A trace that no program made: sizes and life times at random, so that no allocator can have been made for it."""

from random import Random

from prism_bench.extensions.memory.trace import Event, Trace

SMALLEST, LARGEST = 9, 23  # powers of two: 512 B to 8 MiB
IN_USE = 200


def random_trace(allocations: int = 5000, seed: int = 0) -> Trace:
    """So many allocations, `IN_USE` of them in use at a time about; what is left is released at the end."""
    random, live, events = Random(seed), [], []
    for id in range(allocations):
        size = int(2 ** random.uniform(SMALLEST, LARGEST))
        events.append(Event(id, size, 0))
        live.append(id)
        while live and random.random() < len(live) / (2 * IN_USE):
            place = random.randrange(len(live))
            live[place], live[-1] = live[-1], live[place]
            events.append(Event(live.pop(), 0, 0))
    return Trace("random", tuple(events), {"synthetic": True, "seed": seed}).balanced()
