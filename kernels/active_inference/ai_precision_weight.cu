#include "arrays/map_arrays.cuh"

template <class T>
__global__ void ai_precision_weight(const T* precision, const T* error, T* weighted, long long m) {
    map_arrays(weighted, m, [](T p, T e) { return p * e; }, precision, error);
}
