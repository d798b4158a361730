// Written by `prism-bench fuse` from fusions/fused_accuracy_pipeline.py: change that and run it again.
#include "gaussian.cuh"
#include "map_arrays.cuh"

// Stages: error, accuracy.
template <class T>
__global__ void __launch_bounds__(512)
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
__global__ void __launch_bounds__(512)
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
