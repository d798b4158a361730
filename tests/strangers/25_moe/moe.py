import torch
import triton
import triton.language as tl


@triton.jit
def embedding_forward_kernel(embeddings_ptr, indices_ptr, output_ptr, n_elements, embedding_dim: tl.constexpr, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr):
    offsets_m = tl.program_id(0) * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offsets_n = tl.program_id(1) * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    mask_m = offsets_m < n_elements
    mask_n = offsets_n < embedding_dim
    indices = tl.load(indices_ptr + offsets_m, mask=mask_m, other=0)
    embeddings = tl.load(embeddings_ptr + indices[:, None] * embedding_dim + offsets_n[None, :], mask=mask_m[:, None] & mask_n[None, :], other=0.0)
    tl.store(output_ptr + offsets_m[:, None] * embedding_dim + offsets_n[None, :], embeddings, mask=mask_m[:, None] & mask_n[None, :])


def embedding_forward(embeddings, indices):
    flat = indices.view(-1).int()
    n_elements = flat.numel()
    embedding_dim = embeddings.shape[1]
    output = torch.empty(n_elements, embedding_dim, device=indices.device)
    BLOCK_SIZE_M, BLOCK_SIZE_N = 32, 64
    grid = (triton.cdiv(n_elements, BLOCK_SIZE_M), triton.cdiv(embedding_dim, BLOCK_SIZE_N))
    embedding_forward_kernel[grid](embeddings, flat, output, n_elements, embedding_dim=embedding_dim, BLOCK_SIZE_M=BLOCK_SIZE_M, BLOCK_SIZE_N=BLOCK_SIZE_N)
    return output


@triton.jit
def expert_histogram_kernel(topk_ids, counts, numel, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < numel
    expert = tl.load(topk_ids + offs, mask=mask, other=0)
    tl.atomic_add(counts + expert, 1, mask=mask)


def expert_histogram(topk_ids: torch.Tensor, num_experts: int):
    counts = torch.zeros(num_experts, dtype=torch.int32, device=topk_ids.device)
    numel = topk_ids.numel()
    expert_histogram_kernel[(triton.cdiv(numel, 256),)](topk_ids.to(torch.int32), counts, numel, BLOCK=256)
    return counts


@triton.jit
def gather_rows_kernel(src, index, dst, D, BLOCK_D: tl.constexpr):
    row = tl.program_id(0)
    source = tl.load(index + row)
    for d in range(0, D, BLOCK_D):
        cols = d + tl.arange(0, BLOCK_D)
        tl.store(dst + row * D + cols, tl.load(src + source * D + cols, mask=cols < D), mask=cols < D)


def gather_rows(src, index):
    rows, D = index.shape[0], src.shape[1]
    dst = torch.empty((rows, D), dtype=src.dtype, device=src.device)
    gather_rows_kernel[(rows,)](src, index.to(torch.int32), dst, D, BLOCK_D=64)
    return dst


@triton.jit
def moe_sum_kernel(x_ptr, weight_ptr, out_ptr, hidden, TOPK: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < hidden
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for k in tl.static_range(TOPK):
        acc += tl.load(weight_ptr + token * TOPK + k) * tl.load(x_ptr + (token * TOPK + k) * hidden + cols, mask=mask, other=0.0)
    tl.store(out_ptr + token * hidden + cols, acc, mask=mask)


def moe_sum(x, weight):
    tokens, topk, hidden = x.shape
    out = torch.empty((tokens, hidden), device=x.device)
    grid = lambda meta: (tokens, triton.cdiv(hidden, meta["BLOCK"]))
    moe_sum_kernel[grid](x, weight, out, hidden, TOPK=2, BLOCK=128)
    return out
