// Written by `prism-bench fuse` from fused_belief_update.py: change that and run it again.
#include "sums/column_sums.cuh"
#include "arrays/map_arrays.cuh"

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

// Every stage in a separate launch.

template <class T>
__global__ void __launch_bounds__(256)
    fused_belief_update_alone_weighted(const T* o, const T* g, const T* precision, T* weighted, long long m) {
    const auto weighted_of = [](T precision, T o, T g) {
        return precision * (o - g);
    };
    map_arrays(weighted, m, weighted_of, precision, o, g);
}

template <class T>
__global__ void __launch_bounds__(256)
    fused_belief_update_alone_gradient(const T* jacobian, const T* weighted, T* gradient, T* parts,
                                       unsigned int* arrived, int m, int n, int splits) {
    const auto weight = [=](int row) {
        const T weighted_at = weighted[row];
        return weighted_at;
    };
    T gradient_sum;
    if (!column_sums(jacobian, weight, parts, arrived, m, n, splits, &gradient_sum)) return;
    const int column = blockIdx.x / splits * BLOCK_COLUMNS<T> + threadIdx.x;
    if (threadIdx.x >= BLOCK_COLUMNS<T> || column >= n) return;
    gradient[column] = gradient_sum;
}

template <class T>
__global__ void __launch_bounds__(256)
    fused_belief_update_alone_next(T* mu, const T* prior, const T* variance, const T* gradient, T kappa, long long n) {
    const auto mu_of = [=](T mu, T gradient, T prior, T variance) {
        return mu + kappa * (gradient + (prior - mu) / variance);
    };
    map_arrays(mu, n, mu_of, mu, gradient, prior, variance);
}
