#include "entropy/gaussian.cuh"

// error[i] = o[i] - g[i], times precision[i] where WEIGHTED.
template <class T, bool WEIGHTED>
__global__ void ai_prediction_error(const T* o, const T* g, const T* precision, T* error, long long m) {
    if constexpr (WEIGHTED) map_arrays(error, m, PredictionError<T, true>{}, o, g, precision);
    else map_arrays(error, m, [](T seen, T predicted) { return seen - predicted; }, o, g);
}
