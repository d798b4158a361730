#include "neighbours/ksg.cuh"

// Delay vectors, the newest sample first: m samples of the source, l of the target. Row i of both pasts ends at
// t = i + (max(m, l) - 1) delay, y_future is y[t + 1].
extern "C" __global__ void te_embed(const float* source, const float* target, float* x_past, float* y_past,
                                    float* y_future, int n, int m, int l, int delay) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    const int now = i + (max(m, l) - 1) * delay;
    for (int e = 0; e < m; ++e) x_past[static_cast<long long>(i) * m + e] = source[now - e * delay];
    for (int e = 0; e < l; ++e) y_past[static_cast<long long>(i) * l + e] = target[now - e * delay];
    y_future[i] = target[now + 1];
}
