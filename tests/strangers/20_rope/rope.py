import torch
import triton
import triton.language as tl

ROPE_GROUP_SIZE: int = 4
MAX_FUSED_SIZE: int = 65536
next_power_of_2 = triton.next_power_of_2


@triton.heuristics({"BACKWARD_PASS": lambda args: bool(args["BACKWARD_PASS"])})
@triton.jit
def _rope_embedding(
    Q, Q_row_stride, cos, cos_row_stride, sin, sin_row_stride, seqlen,
    head_dim: tl.constexpr, n_heads: tl.constexpr, BACKWARD_PASS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    row_position = tl.program_id(0)
    head = tl.program_id(1)
    col_offsets = tl.arange(0, BLOCK_SIZE)
    half_head_dim = head_dim // 2
    mask = col_offsets < half_head_dim
    sin1 = tl.load(sin + (row_position % seqlen) * sin_row_stride + col_offsets, mask=mask, other=0)
    cos1 = tl.load(cos + (row_position % seqlen) * cos_row_stride + col_offsets, mask=mask, other=0)
    if BACKWARD_PASS:
        sin1 = -sin1
    offs_q1 = row_position * Q_row_stride + head * head_dim + col_offsets
    offs_q2 = offs_q1 + half_head_dim
    Q1 = tl.load(Q + offs_q1, mask=mask, other=0)
    Q2 = tl.load(Q + offs_q2, mask=mask, other=0)
    tl.store(Q + offs_q1, Q1 * cos1 - Q2 * sin1, mask=mask)
    tl.store(Q + offs_q2, Q2 * cos1 + Q1 * sin1, mask=mask)


class Fast_RoPE_Embedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Q, cos, sin):
        cos, sin = cos.squeeze(), sin.squeeze()
        batch, seq_len, n_heads, head_dim = Q.shape
        Q = Q.view(batch * seq_len, n_heads * head_dim)
        n_rows, n_cols = Q.shape
        assert seq_len <= cos.shape[0]
        BLOCK_SIZE = next_power_of_2(head_dim // 2)
        _rope_embedding[(n_rows, n_heads)](
            Q, Q.stride(0), cos, cos.stride(0), sin, sin.stride(0), seq_len,
            head_dim, n_heads, BACKWARD_PASS=False, BLOCK_SIZE=BLOCK_SIZE, num_warps=4,
        )  # fmt: skip
        return Q.view(batch, seq_len, n_heads, head_dim)


@triton.jit
def rotate_every_two_kernel(x_ptr, out_ptr, n_pairs, BLOCK: tl.constexpr):
    pair = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = pair < n_pairs
    even = tl.load(x_ptr + 2 * pair, mask=mask)
    odd = tl.load(x_ptr + 2 * pair + 1, mask=mask)
    tl.store(out_ptr + 2 * pair, -odd, mask=mask)
    tl.store(out_ptr + 2 * pair + 1, even, mask=mask)


def rotate_every_two(x):
    out = torch.empty_like(x)
    n_pairs = x.numel() // 2
    rotate_every_two_kernel[(triton.cdiv(n_pairs, 256),)](x, out, n_pairs, BLOCK=256)
    return out


@triton.jit
def cos_sin_cache_kernel(inv_freq, cos, sin, positions, half, BLOCK: tl.constexpr):
    t = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    angle = t.to(tl.float32) * tl.load(inv_freq + cols, mask=mask, other=0.0)
    tl.store(cos + t * half + cols, tl.cos(angle), mask=mask)
    tl.store(sin + t * half + cols, tl.sin(angle), mask=mask)


def cos_sin_cache(inv_freq, positions: int):
    half = inv_freq.shape[0]
    cos = torch.empty((positions, half), device=inv_freq.device)
    sin = torch.empty_like(cos)
    cos_sin_cache_kernel[(positions,)](inv_freq, cos, sin, positions, half, BLOCK=triton.next_power_of_2(half))
    return cos, sin


@triton.jit
def kv_append_kernel(new_ptr, cache_ptr, position, n_cols, max_len, BLOCK: tl.constexpr):
    batch = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    value = tl.load(new_ptr + batch * n_cols + cols, mask=mask)
    tl.store(cache_ptr + (batch * max_len + position) * n_cols + cols, value, mask=mask)


def kv_append(new, cache, position: int):
    batch, n_cols = new.shape
    max_len = cache.shape[1]
    grid = lambda META: (batch, triton.cdiv(n_cols, META["BLOCK"]))
    kv_append_kernel[grid](new, cache, 0, n_cols, max_len, BLOCK=128)
