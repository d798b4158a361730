"""Philox 4x32-10 of philox.cuh for references (Salmon and others 2011): counter and key give the same words."""

from prism_bench.spec import AnyArray, ArrayModule


def philox(counter: AnyArray, seed: AnyArray, xp: ArrayModule) -> list[AnyArray]:
    """Four random words of 32 bits for each 64-bit counter."""
    low = 0xFFFFFFFF
    words = [counter & low, counter >> 32, xp.zeros_like(counter), xp.zeros_like(counter)]
    keys = [seed & low, seed >> 32]
    for _ in range(10):
        products = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [
            products[1] >> 32 ^ words[1] ^ keys[0], products[1] & low,
            products[0] >> 32 ^ words[3] ^ keys[1], products[0] & low,
        ]  # fmt: skip
        keys = [keys[0] + 0x9E3779B9 & low, keys[1] + 0xBB67AE85 & low]
    return words


def uniforms(count: int, seed: int, xp: ArrayModule) -> AnyArray:
    """A number in [0, 1) of 53 bits for each counter from 0 on: Random4::uniform."""
    words = philox(xp.arange(count, dtype="uint64"), seed, xp)
    return ((words[0] << 32 | words[1]) >> 11).astype("float64") * 2.0**-53
