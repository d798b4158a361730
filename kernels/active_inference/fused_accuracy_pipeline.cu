#include "entropy/gaussian.cuh"

// accuracy = sum of the log-likelihoods of the raw errors o - g, in one pass; WEIGHTED takes precision (o - g) for them.
template <class T, bool WEIGHTED>
__global__ void __launch_bounds__(512, RESIDENT<T>)
    fused_accuracy_pipeline(const T* o, const T* g, const T* precision, T* accuracy, double* by_block,
                            unsigned int* arrived, long long m) {
    const auto term = [](T seen, T predicted, T p) {
        return LogLikelihood<T>{}(PredictionError<T, WEIGHTED>{}(seen, predicted, p), p);
    };
    double sum[] = {thread_sum<T>(m, term, o, g, precision)};
    if (grid_sums(sum, by_block, arrived)) *accuracy = static_cast<T>(sum[0]);
}
