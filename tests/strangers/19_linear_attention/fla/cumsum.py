from typing import Optional

import torch
import triton
import triton.language as tl


@triton.heuristics({"HAS_SCALE": lambda args: args["scale"] is not None})
@triton.autotune(configs=[triton.Config({}, num_warps=num_warps) for num_warps in [1, 2, 4]], key=["BT"])
@triton.jit(do_not_specialize=["T"])
def chunk_local_cumsum_kernel(s, o, scale, T, B: tl.constexpr, H: tl.constexpr, BT: tl.constexpr, HAS_SCALE: tl.constexpr):
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    p_s = tl.make_block_ptr(s + i_bh * T, (T,), (1,), (i_t * BT,), (BT,), (0,))
    p_o = tl.make_block_ptr(o + i_bh * T, (T,), (1,), (i_t * BT,), (BT,), (0,))
    b_s = tl.load(p_s, boundary_check=(0,)).to(tl.float32)
    b_o = tl.cumsum(b_s, axis=0)
    if HAS_SCALE:
        b_o *= scale
    tl.store(p_o, b_o.to(p_o.dtype.element_ty), boundary_check=(0,))


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
    p_x = tl.make_block_ptr(x, (T, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    b_x = tl.load(p_x, boundary_check=(0, 1)).to(tl.float32)
    b_var = tl.sum(b_x * b_x, axis=1)
    b_y = b_x / tl.sqrt(b_var + eps)[:, None]
    p_y = tl.make_block_ptr(y, (T, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    tl.store(p_y, b_y.to(p_y.dtype.element_ty), boundary_check=(0, 1))


def l2norm_fwd(x: torch.Tensor, eps: float = 1e-6):
    x_shape_og = x.shape
    x = x.view(-1, x.shape[-1])
    y = torch.empty_like(x)
    T, D = x.shape[0], x.shape[-1]
    BD = min(65536 // x.element_size(), triton.next_power_of_2(D))
    NB = triton.cdiv(T, 2048)
    l2norm_fwd_kernel[(triton.cdiv(T, 16),)](x, y, eps, NB=NB, T=T, D=D, BT=16, BD=BD)
    return y.view(x_shape_og)
