import math

import torch
import triton
import triton.language as tl


@triton.jit
def _attn_fwd(Q, K, V, Out, sm_scale, N_CTX, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    start_m = tl.program_id(0)
    off_hz = tl.program_id(1)
    qvk_offset = off_hz.to(tl.int64) * N_CTX * HEAD_DIM
    desc_q = tl.make_tensor_descriptor(Q + qvk_offset, shape=[N_CTX, HEAD_DIM], strides=[HEAD_DIM, 1], block_shape=[BLOCK_M, HEAD_DIM])
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    q = desc_q.load([start_m * BLOCK_M, 0])
    end = tl.minimum((start_m + 1) * BLOCK_M, N_CTX) if CAUSAL else N_CTX
    for start_n in range(0, end, BLOCK_N):
        cols = start_n + offs_n
        k = tl.load(K + qvk_offset + cols[None, :] * HEAD_DIM + offs_d[:, None], mask=cols[None, :] < N_CTX, other=0.0)
        qk = tl.dot(q, k) * sm_scale
        keep = cols[None, :] < N_CTX
        if CAUSAL:
            keep = keep & (offs_m[:, None] >= cols[None, :])
        qk = tl.where(keep, qk, float("-inf"))
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.exp(qk - m_ij[:, None])
        alpha = tl.exp(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(V + qvk_offset + cols[:, None] * HEAD_DIM + offs_d[None, :], mask=cols[:, None] < N_CTX, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_ij
    acc = acc / l_i[:, None]
    tl.store(Out + qvk_offset + offs_m[:, None] * HEAD_DIM + offs_d[None, :], acc.to(Out.dtype.element_ty), mask=offs_m[:, None] < N_CTX)


@triton.jit
def _bwd_preprocess(O, DO, Delta, N_CTX, BLOCK_M: tl.constexpr, HEAD_DIM: tl.constexpr):
    off_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    off_hz = tl.program_id(1)
    off_n = tl.arange(0, HEAD_DIM)
    mask = off_m[:, None] < N_CTX
    o = tl.load(O + off_hz * HEAD_DIM * N_CTX + off_m[:, None] * HEAD_DIM + off_n[None, :], mask=mask, other=0.0)
    do = tl.load(DO + off_hz * HEAD_DIM * N_CTX + off_m[:, None] * HEAD_DIM + off_n[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.store(Delta + off_hz * N_CTX + off_m, tl.sum(o * do, axis=1), mask=off_m < N_CTX)


class _attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal, sm_scale):
        Z, H, N_CTX, HEAD_DIM_K = q.shape
        o = torch.empty_like(q)
        BLOCK_M, BLOCK_N = 64, 32
        grid = (triton.cdiv(q.shape[2], BLOCK_M), q.shape[0] * q.shape[1], 1)
        _attn_fwd[grid](q, k, v, o, 0.25, N_CTX, HEAD_DIM=32, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, CAUSAL=True)
        return o

    @staticmethod
    def backward(ctx, do):
        o = ctx.saved_tensors[0]
        BATCH, N_HEAD, N_CTX = o.shape[:3]
        PRE_BLOCK = 64
        delta = torch.empty((BATCH, N_HEAD, N_CTX), device=o.device, dtype=torch.float32)
        pre_grid = (triton.cdiv(N_CTX, PRE_BLOCK), BATCH * N_HEAD)
        _bwd_preprocess[pre_grid](o, do, delta, N_CTX, BLOCK_M=PRE_BLOCK, HEAD_DIM=32)
        return delta


@triton.jit
def merge_attn_states_kernel(output, lse_a, lse_b, prefix, suffix, D: tl.constexpr, PADDED: tl.constexpr):
    token = tl.program_id(0)
    a = tl.load(lse_a + token)
    b = tl.load(lse_b + token)
    top = tl.maximum(a, b)
    pa, pb = tl.exp(a - top), tl.exp(b - top)
    cols = tl.arange(0, PADDED)
    mask = cols < D
    x = tl.load(prefix + token * D + cols, mask=mask)
    y = tl.load(suffix + token * D + cols, mask=mask)
    tl.store(output + token * D + cols, (x * pa + y * pb) / (pa + pb), mask=mask)


def merge_attn_states(output, lse_a, lse_b, prefix, suffix):
    num_tokens = output.shape[0]
    head_size = output.shape[1]
    padded_head_size = triton.next_power_of_2(head_size)
    merge_attn_states_kernel[(num_tokens,)](output, lse_a, lse_b, prefix, suffix, head_size, padded_head_size)


@triton.jit
def decode_scores_kernel(q_ptr, k_ptr, s_ptr, scale, seqlen, D: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.arange(0, D)
    q = tl.load(q_ptr + cols)
    k = tl.load(k_ptr + rows[:, None] * D + cols[None, :], mask=rows[:, None] < seqlen, other=0.0)
    tl.store(s_ptr + rows, tl.sum(k * q[None, :], 1) * scale, mask=rows < seqlen)


def decode_scores(q, k):
    seqlen, D = k.shape
    s = torch.empty(seqlen, device=q.device)
    decode_scores_kernel[(triton.cdiv(seqlen, 32),)](q, k, s, 1 / math.sqrt(D), seqlen, D=D, BLOCK=32)
    return s
