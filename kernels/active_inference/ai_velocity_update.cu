#include "arrays/map_arrays.cuh"

// velocity[i] = (now[i] - before[i]) / dt.
template <class T>
__global__ void ai_velocity_update(const T* now, const T* before, T* velocity, T dt, long long n) {
    map_arrays(velocity, n, [=](T x, T y) { return (x - y) / dt; }, now, before);
}
