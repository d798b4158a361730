#include "entropy/gaussian.cuh"

// free energy = complexity - accuracy of one belief, with both parts, in one launch.
template <class T>
__global__ void __launch_bounds__(512, RESIDENT<T>)
    fused_free_energy(const T* mu_q, const T* mu_p, const T* var_q, const T* var_p, const T* o, const T* g,
                      const T* precision, T* free_energy, T* complexity, T* accuracy, double* by_block,
                      unsigned int* arrived, long long n, long long m) {
    const auto likelihood = [](T seen, T predicted, T p) { return LogLikelihood<T>{}(seen - predicted, p); };
    double sum[] = {thread_sum<T>(n, GaussianDivergence<T>{}, mu_q, mu_p, var_q, var_p),
                    thread_sum<T>(m, likelihood, o, g, precision)};
    if (!grid_sums(sum, by_block, arrived)) return;
    *free_energy = static_cast<T>(sum[0] - sum[1]);
    *complexity = static_cast<T>(sum[0]);
    *accuracy = static_cast<T>(sum[1]);
}
