// Written by `prism-bench fuse` from fused_kl_complexity.py: change that and run it again.
#include "entropy/gaussian.cuh"
#include "arrays/map_arrays.cuh"

// Stages: complexity.
template <class T>
__global__ void __launch_bounds__(512, RESIDENT<T>)
    fused_kl_complexity_generated(const T* mu_q, const T* mu_p, const T* var_q, const T* var_p, T* complexity,
                                  double* by_block, unsigned int* arrived, long long n) {
    const auto complexity_term = [](T mu_q, T mu_p, T var_q, T var_p) {
        return GaussianDivergence<T>{}(mu_q, mu_p, var_q, var_p);
    };
    double part[] = {thread_sum<T>(n, complexity_term, mu_q, mu_p, var_q, var_p)};
    if (!grid_sums(part, by_block, arrived)) return;
    const double complexity_all = part[0];
    *complexity = static_cast<T>(complexity_all);
}

// Every stage in a separate launch.

template <class T>
__global__ void __launch_bounds__(256)
    fused_kl_complexity_alone_complexity_terms(const T* mu_q, const T* mu_p, const T* var_q, const T* var_p,
                                               T* complexity_terms, long long n) {
    const auto complexity_terms_of = [](T mu_q, T mu_p, T var_q, T var_p) {
        return GaussianDivergence<T>{}(mu_q, mu_p, var_q, var_p);
    };
    map_arrays(complexity_terms, n, complexity_terms_of, mu_q, mu_p, var_q, var_p);
}

template <class T>
__global__ void __launch_bounds__(512, RESIDENT<T>)
    fused_kl_complexity_alone_complexity(const T* complexity_terms, T* complexity, double* by_block,
                                         unsigned int* arrived, long long n) {
    const auto complexity_term = [](T complexity_terms) {
        return complexity_terms;
    };
    double part[] = {thread_sum<T>(n, complexity_term, complexity_terms)};
    if (!grid_sums(part, by_block, arrived)) return;
    const double complexity_all = part[0];
    *complexity = static_cast<T>(complexity_all);
}
