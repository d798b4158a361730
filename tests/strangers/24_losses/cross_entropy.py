import torch
import triton
import triton.language as tl

MAX_FUSED_SIZE = 65536 // 2


@triton.jit
def cross_entropy_forward_kernel(logits_ptr, logits_row_stride, loss_ptr, logsumexp_ptr, labels_ptr, VOCAB_SIZE, BLOCK_SIZE: tl.constexpr):
    row_idx = tl.program_id(0)
    logits_ptr += row_idx * tl.cast(logits_row_stride, tl.int64)
    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < VOCAB_SIZE
    label_idx = tl.load(labels_ptr + row_idx).to(tl.int32)
    logits = tl.load(logits_ptr + col_offsets, mask=mask, other=-float("inf")).to(tl.float32)
    c = tl.max(logits, 0)
    logsumexp = c + tl.log(tl.sum(tl.exp(logits - c), 0))
    if label_idx != -100:
        loss = logsumexp - tl.load(logits_ptr + label_idx).to(tl.float32)
    else:
        loss = 0.0
    tl.store(logsumexp_ptr + row_idx, logsumexp)
    tl.store(loss_ptr + row_idx, loss)


@triton.jit
def cross_entropy_backward_kernel(logits_ptr, logits_row_stride, dloss_ptr, logsumexp_ptr, labels_ptr, VOCAB_SIZE, BLOCK_SIZE: tl.constexpr):
    row_idx = tl.program_id(0)
    block_idx = tl.program_id(1)
    logits_ptr += row_idx * logits_row_stride
    col_offsets = block_idx * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < VOCAB_SIZE
    label_idx = tl.load(labels_ptr + row_idx)
    dloss = tl.load(dloss_ptr + row_idx)
    y = tl.exp(tl.load(logits_ptr + col_offsets, mask=mask, other=-float("inf")) - tl.load(logsumexp_ptr + row_idx))
    y = tl.where(col_offsets == label_idx, y - 1.0, y)
    tl.store(logits_ptr + col_offsets, dloss * y, mask=mask)


class Fast_CrossEntropyLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels):
        n_rows, vocab_size = logits.shape
        losses = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
        logsumexp = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
        BLOCK_SIZE = triton.next_power_of_2(vocab_size)
        cross_entropy_forward_kernel[(n_rows,)](
            logits, logits.stride(0), losses, logsumexp, labels.int(), VOCAB_SIZE=vocab_size, BLOCK_SIZE=BLOCK_SIZE, num_warps=8
        )
        ctx.save_for_backward(logits, logsumexp, labels)
        return losses

    @staticmethod
    def backward(ctx, dlosses):
        logits, logsumexp, labels = ctx.saved_tensors
        n_rows, vocab_size = logits.shape
        BLOCK_SIZE = 256
        div, mod = divmod(vocab_size, BLOCK_SIZE)
        n_blocks = div + (mod != 0)
        cross_entropy_backward_kernel[(n_rows, n_blocks)](
            logits, logits.stride(0), dlosses, logsumexp, labels.int(), VOCAB_SIZE=vocab_size, BLOCK_SIZE=BLOCK_SIZE, num_warps=8
        )
        return logits, None


@triton.jit
def kl_div_kernel(y_ptr, y_stride, gt_ptr, gt_stride, loss_ptr, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    y_ptr += pid * y_stride
    gt_ptr += pid * gt_stride
    loss_sum = 0.0
    for i in range(0, n_cols, BLOCK_SIZE):
        offsets = i + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        y = tl.load(y_ptr + offsets, mask=mask, other=0.0)
        y_true = tl.load(gt_ptr + offsets, mask=mask, other=0.0)
        loss_sum += tl.sum(y_true * (tl.log(tl.maximum(y_true, eps)) - y), axis=0)
    tl.store(loss_ptr + pid, loss_sum)


def kl_div(y_pred, y_true, eps=1e-10):
    BT, V = y_pred.shape
    output = torch.zeros((BT,), device=y_pred.device)
    kl_div_kernel[(BT,)](y_pred, y_pred.stride(0), y_true, y_true.stride(0), output, V, eps=eps, BLOCK_SIZE=min(128, triton.next_power_of_2(V)))
    return output


@triton.jit
def mse_kernel(pred, target, total, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.load(pred + offs, offs < n, 0.0) - tl.load(target + offs, offs < n, 0.0)
    tl.atomic_add(total, tl.sum(d * d))


def mse(pred, target):
    n = pred.numel()
    total = torch.zeros(1, device=pred.device)
    mse_kernel[(triton.cdiv(n, 512),)](pred, target, total, n, BLOCK=512)
    return total / n
