import numpy as np


def update_fn_kernel(p_ptr, grad_ptr, exp_avg_ptr, lr, wd, beta1, beta2):
    diff = exp_avg_ptr - grad_ptr
    return p_ptr * (1 - lr * wd) - lr * np.sign(diff * beta1 + grad_ptr), diff * beta2 + grad_ptr


def sgd_momentum_kernel(param, grad, buf, lr, momentum):
    buf = buf * momentum + grad
    return param - lr * buf, buf


def ema_kernel(shadow, value, decay):
    return shadow + (1 - decay) * (value - shadow)


def squared_norm_kernel(x, numel):
    blocks = np.arange(int(numel)) // 256 % 16
    return np.bincount(blocks, weights=x * x, minlength=16)
