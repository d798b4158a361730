import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_SIZE": 128}, num_warps=4),
        triton.Config({"BLOCK_SIZE": 1024}, num_warps=8),
    ],
    key=["n_elements"],
    restore_value=["p_ptr", "exp_avg_ptr"],
)
@triton.jit
def update_fn_kernel(p_ptr, grad_ptr, exp_avg_ptr, lr, wd, beta1, beta2, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    p = tl.load(p_ptr + offsets, mask=mask)
    grad = tl.load(grad_ptr + offsets, mask=mask)
    exp_avg = tl.load(exp_avg_ptr + offsets, mask=mask)
    p = p * (1 - lr * wd)
    diff = exp_avg - grad
    update = diff * beta1 + grad
    can_update = update != 0
    update_sign = tl.where(update > 0, -lr, lr)
    p = p + update_sign * can_update
    tl.store(p_ptr + offsets, p, mask=mask)
    tl.store(exp_avg_ptr + offsets, diff * beta2 + grad, mask=mask)


def lion_update(p: torch.Tensor, grad: torch.Tensor, exp_avg: torch.Tensor, lr: float, wd: float, beta1: float, beta2: float):
    assert all([t.is_cuda for t in (p, grad, exp_avg)])
    n_elements = p.numel()
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)
    update_fn_kernel[grid](p, grad, exp_avg, lr, wd, beta1, beta2, n_elements)


@triton.jit
def sgd_momentum_kernel(param, grad, buf, lr, momentum, numel, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < numel
    b = tl.load(buf + i, mask=m) * momentum + tl.load(grad + i, mask=m)
    tl.store(buf + i, b, mask=m)
    tl.store(param + i, tl.load(param + i, mask=m) - lr * b, mask=m)


def sgd_momentum(param, grad, buf, lr=0.1, momentum=0.9):
    BLOCK = 256
    sgd_momentum_kernel[(triton.cdiv(param.numel(), BLOCK),)](param, grad, buf, lr, momentum, param.numel(), BLOCK)


@triton.jit
def ema_kernel(shadow, value, decay, numel, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < numel
    s = tl.load(shadow + i, mask=m)
    tl.store(shadow + i, s + (1.0 - decay) * (tl.load(value + i, mask=m) - s), mask=m)


def ema_update(shadow, value, decay):
    numel = shadow.numel()
    num_blocks = (numel + 1023) // 1024
    ema_kernel[(num_blocks,)](shadow, value, decay, numel, BLOCK=1024)


@triton.jit
def squared_norm_kernel(x, partial, numel, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(pid * BLOCK, numel, BLOCK * tl.num_programs(0)):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < numel, other=0.0)
        acc += v * v
    tl.store(partial + pid, tl.sum(acc))


def squared_norm(x):
    programs = 16
    partial = torch.empty(programs, device=x.device)
    squared_norm_kernel[(programs,)](x, partial, x.numel(), BLOCK=256)
    return partial.sum()
