"""Digest of bytes: the same sum on a device (`backends/cuda/guard.cu`) and here, whatever the order of threads."""

from collections.abc import Mapping

import numpy as np

from prism_bench.spec.inputs import STEP, AnyArray, ArrayModule, mixed

_WORDS = 1 << 14  # at a time on the host: they and what is computed of them stay in a core's cache
_DEVICE_WORDS = 1 << 24  # at a time elsewhere: as many fill a device, and results of 128 MiB fit next to its buffers
_TAIL = np.uint64(0xD1342543DE82EF95)


def digest_of(array: AnyArray, xp: ArrayModule = np) -> int:
    """Return the digest of the bytes of an array of `xp`: a sum over mixed words and their places, modulo 2**64."""
    content = xp.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole, piece = content.size // 8 * 8, _WORDS if xp is np else _DEVICE_WORDS
    words, tail = content[:whole].view(np.uint64), content[whole:].astype(np.uint64)
    steps = STEP * xp.arange(1, min(words.size, piece) + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        places = xp.arange(whole + 1, whole + tail.size + 1, dtype=np.uint64)
        found = mixed(tail + _TAIL * places).sum(dtype=np.uint64)
        for at in range(0, words.size, piece):
            some = words[at : at + piece]
            found += mixed(some + (steps[: some.size] + STEP * np.uint64(at))).sum(dtype=np.uint64)
        return int(found)


def differing(outputs: Mapping[str, AnyArray], digests: Mapping[str, int], xp: ArrayModule) -> list[str]:
    """Return the names of outputs that have another digest."""
    return [name for name, array in outputs.items() if digest_of(array, xp) != digests.get(name)]
