import numpy as np


def causal_conv1d_fwd_kernel(x, weight, bias, dim, seqlen):
    x, weight = x.reshape(-1, dim, seqlen), weight.reshape(dim, 4)
    padded = np.pad(x, ((0, 0), (0, 0), (3, 0)))
    out = sum(weight[:, w, None] * padded[:, :, w : w + seqlen] for w in range(4)) + bias.reshape(dim, 1)
    return out / (1 + np.exp(-out))


def causal_conv1d_update_kernel(conv_state, x, weight, batch, dim):
    state = np.concatenate([conv_state.reshape(batch, dim, 4)[:, :, 1:], x.reshape(batch, dim, 1)], axis=2)
    return state, (state * weight.reshape(dim, 4)).sum(axis=2)


def channel_last_kernel(x, channels, seqlen):
    return x.reshape(channels, seqlen).T


def conv_params_kernel(params, x, weight):
    batch, dim, seqlen, width = (params[name] for name in ("batch", "dim", "seqlen", "width"))
    padded = np.pad(x.reshape(batch, dim, seqlen), ((0, 0), (0, 0), (width, 0)))
    taps = weight.reshape(dim, width)
    out = sum(taps[:, w, None] * padded[:, :, width - w : width - w + seqlen] for w in range(width))
    return out / (1 + np.exp(-out)) if params["silu_activation"] else out
