// Written by `prism-bench fuse` from fused_free_energy.py: change that and run it again.
#include "entropy/gaussian.cuh"
#include "arrays/map_arrays.cuh"

// Stages: complexity, error, accuracy, free_energy.
template <class T>
__global__ void __launch_bounds__(512, RESIDENT<T>)
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

// Every stage in a separate launch.

template <class T>
__global__ void __launch_bounds__(256)
    fused_free_energy_alone_complexity_terms(const T* mu_q, const T* mu_p, const T* var_q, const T* var_p,
                                             T* complexity_terms, long long n) {
    const auto complexity_terms_of = [](T mu_q, T mu_p, T var_q, T var_p) {
        return GaussianDivergence<T>{}(mu_q, mu_p, var_q, var_p);
    };
    map_arrays(complexity_terms, n, complexity_terms_of, mu_q, mu_p, var_q, var_p);
}

template <class T>
__global__ void __launch_bounds__(512, RESIDENT<T>)
    fused_free_energy_alone_complexity(const T* complexity_terms, T* complexity, double* by_block,
                                       unsigned int* arrived, long long n) {
    const auto complexity_term = [](T complexity_terms) {
        return complexity_terms;
    };
    double part[] = {thread_sum<T>(n, complexity_term, complexity_terms)};
    if (!grid_sums(part, by_block, arrived)) return;
    const double complexity_all = part[0];
    *complexity = static_cast<T>(complexity_all);
}

template <class T>
__global__ void __launch_bounds__(256)
    fused_free_energy_alone_error(const T* o, const T* g, T* error, long long m) {
    const auto error_of = [](T o, T g) {
        return o - g;
    };
    map_arrays(error, m, error_of, o, g);
}

template <class T>
__global__ void __launch_bounds__(256)
    fused_free_energy_alone_accuracy_terms(const T* precision, const T* error, T* accuracy_terms, long long m) {
    const auto accuracy_terms_of = [](T error, T precision) {
        return LogLikelihood<T>{}(error, precision);
    };
    map_arrays(accuracy_terms, m, accuracy_terms_of, error, precision);
}

template <class T>
__global__ void __launch_bounds__(512, RESIDENT<T>)
    fused_free_energy_alone_accuracy(const T* accuracy_terms, T* accuracy, double* by_block, unsigned int* arrived,
                                     long long m) {
    const auto accuracy_term = [](T accuracy_terms) {
        return accuracy_terms;
    };
    double part[] = {thread_sum<T>(m, accuracy_term, accuracy_terms)};
    if (!grid_sums(part, by_block, arrived)) return;
    const double accuracy_all = part[0];
    *accuracy = static_cast<T>(accuracy_all);
}

template <class T>
__global__ void __launch_bounds__(1)
    fused_free_energy_alone_free_energy(const T* complexity, const T* accuracy, T* free_energy) {
    *free_energy = *complexity - *accuracy;
}
