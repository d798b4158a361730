import torch
import triton
import triton.language as tl


@triton.jit
def fused_recurrent_fwd_kernel(q, k, v, o, scale, T, K: tl.constexpr, V: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr):
    i_v, i_bh = tl.program_id(0), tl.program_id(1)
    o_k = tl.arange(0, BK)
    o_v = i_v * BV + tl.arange(0, BV)
    mask_k, mask_v = o_k < K, o_v < V
    p_q = q + i_bh * T * K + o_k
    p_k = k + i_bh * T * K + o_k
    p_v = v + i_bh * T * V + o_v
    p_o = o + i_bh * T * V + o_v
    b_h = tl.zeros([BV, BK], dtype=tl.float32)
    for _ in range(0, T):
        b_q = tl.load(p_q, mask=mask_k, other=0).to(tl.float32) * scale
        b_k = tl.load(p_k, mask=mask_k, other=0).to(tl.float32)
        b_v = tl.load(p_v, mask=mask_v, other=0).to(tl.float32)
        b_h += b_v[:, None] * b_k[None, :]
        tl.store(p_o, tl.sum(b_h * b_q[None, :], axis=1), mask=mask_v)
        p_q += K
        p_k += K
        p_v += V
        p_o += V


@triton.jit
def token_shift_kernel(x, y, T, D: tl.constexpr, BD: tl.constexpr):
    i_b, i_t = tl.program_id(0), tl.program_id(1)
    o_d = tl.arange(0, BD)
    m_d = o_d < D
    base = (i_b * T + i_t) * D + o_d
    b_x = tl.load(x + base, mask=m_d, other=0)
    b_prev = tl.load(x + base - D, mask=m_d & (o_d + i_t * D >= D), other=0)
    tl.store(y + base, b_prev - b_x, mask=m_d)


class FusedRecurrentFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, scale=None):
        B, H, T, K, V = *q.shape, v.shape[-1]
        BK, BV = triton.next_power_of_2(K), min(triton.next_power_of_2(V), 8)
        NV = triton.cdiv(V, BV)
        o = torch.empty_like(v)
        grid = (NV, B * H)
        fused_recurrent_fwd_kernel[grid](q, k, v, o, K**-0.5, T=T, K=K, V=V, BK=BK, BV=BV, num_warps=1)
        return o


def token_shift(x: torch.Tensor):
    B, T, D = x.shape
    y = torch.empty_like(x)
    token_shift_kernel[(B, T)](x, y, T, D=D, BD=triton.next_power_of_2(D))
    return y
