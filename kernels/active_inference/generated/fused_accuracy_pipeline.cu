// Written by `prism-bench fuse` from fused_accuracy_pipeline.py: change that and run it again.
#include "entropy/gaussian.cuh"
#include "arrays/map_arrays.cuh"

// Stages: error, accuracy.
template <class T>
__global__ void __launch_bounds__(512, RESIDENT<T>)
    fused_accuracy_pipeline_generated(const T* o, const T* g, const T* precision, T* accuracy, double* by_block,
                                      unsigned int* arrived, long long m) {
    const auto accuracy_term = [](T o, T g, T precision) {
        return LogLikelihood<T>{}(o - g, precision);
    };
    double part[] = {thread_sum<T>(m, accuracy_term, o, g, precision)};
    if (!grid_sums(part, by_block, arrived)) return;
    const double accuracy_all = part[0];
    *accuracy = static_cast<T>(accuracy_all);
}

// Stages: error, accuracy.
template <class T>
__global__ void __launch_bounds__(512, RESIDENT<T>)
    fused_accuracy_pipeline_generated_compat(const T* o, const T* g, const T* precision, T* accuracy, double* by_block,
                                             unsigned int* arrived, long long m) {
    const auto accuracy_term = [](T precision, T o, T g) {
        return LogLikelihood<T>{}(precision * (o - g), precision);
    };
    double part[] = {thread_sum<T>(m, accuracy_term, precision, o, g)};
    if (!grid_sums(part, by_block, arrived)) return;
    const double accuracy_all = part[0];
    *accuracy = static_cast<T>(accuracy_all);
}

// Every stage in a separate launch.

template <class T>
__global__ void __launch_bounds__(256)
    fused_accuracy_pipeline_alone_error(const T* o, const T* g, T* error, long long m) {
    const auto error_of = [](T o, T g) {
        return o - g;
    };
    map_arrays(error, m, error_of, o, g);
}

template <class T>
__global__ void __launch_bounds__(256)
    fused_accuracy_pipeline_alone_accuracy_terms(const T* precision, const T* error, T* accuracy_terms, long long m) {
    const auto accuracy_terms_of = [](T error, T precision) {
        return LogLikelihood<T>{}(error, precision);
    };
    map_arrays(accuracy_terms, m, accuracy_terms_of, error, precision);
}

template <class T>
__global__ void __launch_bounds__(512, RESIDENT<T>)
    fused_accuracy_pipeline_alone_accuracy(const T* accuracy_terms, T* accuracy, double* by_block,
                                           unsigned int* arrived, long long m) {
    const auto accuracy_term = [](T accuracy_terms) {
        return accuracy_terms;
    };
    double part[] = {thread_sum<T>(m, accuracy_term, accuracy_terms)};
    if (!grid_sums(part, by_block, arrived)) return;
    const double accuracy_all = part[0];
    *accuracy = static_cast<T>(accuracy_all);
}
