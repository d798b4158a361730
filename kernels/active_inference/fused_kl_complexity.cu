#include "entropy/gaussian.cuh"

// complexity = D(q || p) of diagonal Gaussians, summed in one pass.
template <class T>
__global__ void __launch_bounds__(512, RESIDENT<T>)
    fused_kl_complexity(const T* mu_q, const T* mu_p, const T* var_q, const T* var_p, T* complexity, double* by_block,
                        unsigned int* arrived, long long n) {
    double sum[] = {thread_sum<T>(n, GaussianDivergence<T>{}, mu_q, mu_p, var_q, var_p)};
    if (grid_sums(sum, by_block, arrived)) *complexity = static_cast<T>(sum[0]);
}
