import torch
import triton
import triton.language as tl


@triton.jit
def causal_conv1d_kernel(x_ptr, w_ptr, bias_ptr, o_ptr, dim, seqlen, SILU: tl.constexpr, WIDTH: tl.constexpr, BLOCK_T: tl.constexpr):
    row = tl.program_id(0)
    channel = row % dim
    t = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    acc = tl.zeros([BLOCK_T], dtype=tl.float32) + tl.load(bias_ptr + channel)
    for w in tl.static_range(WIDTH):
        source = t - (WIDTH - 1 - w)
        x = tl.load(x_ptr + row * seqlen + source, mask=(source >= 0) & (source < seqlen), other=0.0)
        acc += x * tl.load(w_ptr + channel * WIDTH + w)
    if SILU:
        acc = acc * tl.sigmoid(acc)
    tl.store(o_ptr + row * seqlen + t, acc, mask=t < seqlen)


def causal_conv1d(x, weight, bias, activation="silu"):
    batch, dim, seqlen = x.shape
    out = torch.empty_like(x)
    BLOCK_T = 64
    grid = (batch * dim, triton.cdiv(seqlen, BLOCK_T))
    causal_conv1d_kernel[grid](x, weight, bias, out, dim, seqlen, SILU=True, WIDTH=4, BLOCK_T=BLOCK_T)
    return out


@triton.jit
def max_pool1d_kernel(x, y, rows, length, out_length, K: tl.constexpr, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    best = tl.full([BLOCK], -float("inf"), dtype=tl.float32)
    for k in range(K):
        i = o * STRIDE + k
        best = tl.maximum(best, tl.load(x + row * length + i, mask=(o < out_length) & (i < length), other=-float("inf")))
    tl.store(y + row * out_length + o, best, mask=o < out_length)


def max_pool1d(x):
    rows, length = x.shape
    out_length = (length - 2) // 2 + 1
    y = torch.empty((rows, out_length), device=x.device)
    max_pool1d_kernel[(rows, triton.cdiv(out_length, 64))](x, y, rows, length, out_length, K=2, STRIDE=2, BLOCK=64)
    return y


@triton.jit
def upsample_nearest2d_kernel(ptr_o, ptr_i, N, OH, OW, IH, IW, BLOCK_SIZE: tl.constexpr):
    idx = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    ow = idx % OW
    oh = idx // OW % OH
    n = idx // OW // OH
    mask = idx < N * OH * OW
    ih = oh * IH // OH
    iw = ow * IW // OW
    tl.store(ptr_o + idx, tl.load(ptr_i + (n * IH + ih) * IW + iw, mask=mask), mask=mask)


def upsample_nearest2d(input: torch.Tensor):
    N, IH, IW = input.shape
    OH, OW = 2 * IH, 2 * IW
    output = torch.empty((N, OH, OW), device=input.device, dtype=input.dtype)
    total_threads = N * OH * OW
    grid = lambda META: (triton.cdiv(total_threads, META["BLOCK_SIZE"]),)
    upsample_nearest2d_kernel[grid](output, input, N, OH, OW, IH, IW, BLOCK_SIZE=256)
    return output


@triton.jit
def pad_rows_kernel(x, y, cols, padded, value, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    data = tl.load(x + row * cols + c, mask=c < cols, other=0.0)
    tl.store(y + row * padded + c, tl.where(c < cols, data, value), mask=c < padded)


def pad_rows(x, padded: int, value: float = 0.0):
    rows, cols = x.shape
    y = torch.empty((rows, padded), device=x.device)
    pad_rows_kernel[(rows,)](x, y, cols, padded, value, BLOCK=triton.next_power_of_2(padded))
    return y
