"""How the maps of vector_load.cuh and halves.cuh are launched, and what of that may vary: any grid does."""

from prism_bench import Launch, Tune

BLOCKS = (64, 128, 256, 512, 1024)


def spread(n: int, block: int, groups: int, entry: str | None = None, each: int = 4) -> Launch:
    """So many groups of `each` elements a thread, one grid of threads apart."""
    return Launch(grid=-(-n // (each * block * groups)), block=block, entry=entry)


def map_tune(block: int = 256, most: int = 1024) -> Tune:
    """Threads of a block and groups of a thread; `block` is the default, `most` what the source is compiled for."""
    others = (one for one in BLOCKS if one <= most and one != block)
    return Tune(block=(block, *others), groups=(1, 2, 4))
