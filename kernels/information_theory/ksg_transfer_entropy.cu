#include "ksg.cuh"

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

// The share of runs that reach the unshifted one, itself counted: (1 + #{TE_s >= TE}) / (1 + surrogates).
extern "C" __global__ void __launch_bounds__(256)
    te_significance(const float* estimates, float* estimate, float* p_value, int surrogates) {
    int reached = 0;
    for (int s = threadIdx.x; s < surrogates; s += blockDim.x) reached += estimates[s + 1] >= estimates[0];
    const int all = block_reduce(reached, Sum{}, 0);
    if (threadIdx.x > 0) return;
    *estimate = estimates[0];
    *p_value = (1.0f + all) / (1.0f + surrogates);
}
