import triton


def cfggen():
    block_size = [1024, 2048]
    return [triton.Config({"BLOCK_SIZE": m}, num_warps=4) for m in block_size]


def libentry():
    """Decorate a jitted function with a cache of its launches."""

    def decorator(fn):
        return fn

    return decorator
