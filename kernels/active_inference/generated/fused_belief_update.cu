// Written by `prism-bench fuse` from fusions/fused_belief_update.py: change that and run it again.
#include "column_sums.cuh"

// Stages: weighted, gradient, next.
template <class T>
__global__ void __launch_bounds__(256)
    fused_belief_update_generated(T* mu, const T* jacobian, const T* o, const T* g, const T* precision, const T* prior,
                                  const T* variance, T* parts, unsigned int* arrived, T kappa, int m, int n,
                                  int splits) {
    const auto weight = [=](int row) {
        const T precision_at = precision[row];
        const T o_at = o[row];
        const T g_at = g[row];
        return precision_at * (o_at - g_at);
    };
    T gradient;
    if (!column_sums(jacobian, weight, parts, arrived, m, n, splits, &gradient)) return;
    const int column = blockIdx.x / splits * BLOCK_COLUMNS<T> + threadIdx.x;
    if (threadIdx.x >= BLOCK_COLUMNS<T> || column >= n) return;
    const T mu_at = mu[column];
    const T prior_at = prior[column];
    const T variance_at = variance[column];
    mu[column] = mu_at + kappa * (gradient + (prior_at - mu_at) / variance_at);
}

// Stages: weighted, gradient, next.
template <class T>
__global__ void __launch_bounds__(256)
    fused_belief_update_generated_likelihood(T* mu, const T* jacobian, const T* o, const T* g, const T* precision,
                                             T* parts, unsigned int* arrived, T kappa, int m, int n, int splits) {
    const auto weight = [=](int row) {
        const T precision_at = precision[row];
        const T o_at = o[row];
        const T g_at = g[row];
        return precision_at * (o_at - g_at);
    };
    T gradient;
    if (!column_sums(jacobian, weight, parts, arrived, m, n, splits, &gradient)) return;
    const int column = blockIdx.x / splits * BLOCK_COLUMNS<T> + threadIdx.x;
    if (threadIdx.x >= BLOCK_COLUMNS<T> || column >= n) return;
    const T mu_at = mu[column];
    mu[column] = mu_at + kappa * gradient;
}
