import numpy as np


def stencil_1d(x):
    return np.convolve(x, np.ones(7), mode="same") if len(x) >= 7 else None


def jacobi_2d(u, nx, ny):
    u = u.reshape(ny, nx)
    v = u.copy()
    v[1:-1, 1:-1] = 0.25 * (u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1])
    return v


def blur(in_, e):
    image = np.pad(in_.reshape(e["height"], e["width"]).astype(float), 1, constant_values=np.nan)
    return np.nanmean(np.lib.stride_tricks.sliding_window_view(image, (3, 3)), axis=(2, 3)) // 1
