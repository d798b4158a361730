from typing import Optional

import torch
import triton
import triton.language as tl


@triton.heuristics({"HAS_SCALE": lambda args: args["scale"] is not None})
@triton.autotune(configs=[triton.Config({}, num_warps=num_warps) for num_warps in [1, 2, 4]], key=["BT"])
@triton.jit(do_not_specialize=["T"])
def chunk_local_cumsum_kernel(s, o, scale, T, B: tl.constexpr, H: tl.constexpr, BT: tl.constexpr, HAS_SCALE: tl.constexpr):
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    o_t = i_t * BT + tl.arange(0, BT)
    m_t = o_t < T
    b_s = tl.load(s + i_bh * T + o_t, mask=m_t, other=0).to(tl.float32)
    b_o = tl.cumsum(b_s, axis=0)
    if HAS_SCALE:
        b_o *= scale
    tl.store(o + i_bh * T + o_t, b_o.to(o.dtype.element_ty), mask=m_t)


def chunk_local_cumsum(g: torch.Tensor, chunk_size: int, scale: Optional[float] = 0.5) -> torch.Tensor:
    B, H, T = g.shape
    BT = chunk_size
    NT = triton.cdiv(T, BT)
    o = torch.empty_like(g)
    grid = (NT, B * H)
    chunk_local_cumsum_kernel[grid](s=g, o=o, scale=scale, T=T, B=B, H=H, BT=64)
    return o


@triton.jit
def l2norm_fwd_kernel(x, y, eps, NB: tl.constexpr, T, D: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr):
    i_t = tl.program_id(0)
    o_t = i_t * BT + tl.arange(0, BT)
    o_d = tl.arange(0, BD)
    mask = (o_t < T)[:, None] & (o_d < D)[None, :]
    b_x = tl.load(x + o_t[:, None] * D + o_d[None, :], mask=mask, other=0).to(tl.float32)
    b_var = tl.sum(b_x * b_x, axis=1)
    b_y = b_x / tl.sqrt(b_var + eps)[:, None]
    tl.store(y + o_t[:, None] * D + o_d[None, :], b_y.to(y.dtype.element_ty), mask=mask)


def l2norm_fwd(x: torch.Tensor, eps: float = 1e-6):
    x_shape_og = x.shape
    x = x.view(-1, x.shape[-1])
    y = torch.empty_like(x)
    T, D = x.shape[0], x.shape[-1]
    BD = min(65536 // x.element_size(), triton.next_power_of_2(D))
    NB = triton.cdiv(T, 2048)
    l2norm_fwd_kernel[(triton.cdiv(T, 16),)](x, y, eps, NB=NB, T=T, D=D, BT=16, BD=BD)
    return y.view(x_shape_og)
