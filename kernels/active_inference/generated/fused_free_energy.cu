// Written by `prism-bench fuse` from fusions/fused_free_energy.py: change that and run it again.
#include "gaussian.cuh"
#include "map_arrays.cuh"

// Stages: complexity, error, accuracy, free_energy.
template <class T>
__global__ void __launch_bounds__(512)
    fused_free_energy_generated(const T* mu_q, const T* mu_p, const T* var_q, const T* var_p, const T* o, const T* g,
                                const T* precision, T* free_energy, T* complexity, T* accuracy, double* by_block,
                                unsigned int* arrived, long long n, long long m) {
    const auto complexity_term = [](T mu_q, T mu_p, T var_q, T var_p) {
        return GaussianDivergence<T>{}(mu_q, mu_p, var_q, var_p);
    };
    const auto accuracy_term = [](T o, T g, T precision) {
        return LogLikelihood<T>{}(o - g, precision);
    };
    double part[] = {thread_sum<T>(n, complexity_term, mu_q, mu_p, var_q, var_p),
                     thread_sum<T>(m, accuracy_term, o, g, precision)};
    if (!grid_sums(part, by_block, arrived)) return;
    const double complexity_all = part[0];
    const double accuracy_all = part[1];
    *free_energy = static_cast<T>(complexity_all - accuracy_all);
    *complexity = static_cast<T>(complexity_all);
    *accuracy = static_cast<T>(accuracy_all);
}
