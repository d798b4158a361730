import torch
import triton
import triton.language as tl


@triton.autotune(configs=[], key=["n"])
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, block: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * block + tl.arange(0, block)
    mask = offs < n
    xs = x_ptr + offs
    x = tl.load(xs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


def add(x, y):
    out = torch.empty_like(x)
    n = out.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, block=1024)

    def grid(meta):
        return (triton.cdiv(n, meta["block"]),)

    add_kernel[grid](x, y, out, n)
    return out


@torch.library.custom_op("mylib::add", mutates_args=())
def add_op(x: torch.Tensor, y: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    return add(x, y)
