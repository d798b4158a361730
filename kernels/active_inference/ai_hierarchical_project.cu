#include "map_arrays.cuh"

// out[i] = a[i mod length]: a block's threads go on where the one before left off, so that only the first of each divides.
template <class T>
__global__ void ai_hierarchical_project(const T* a, T* out, long long length, long long n) {
    const long long stride = grid_threads() % length;
    long long from = grid_thread() % length;
    for (long long i = grid_thread(); i < n; i += grid_threads()) {
        out[i] = a[from];
        from += stride;
        if (from >= length) from -= length;
    }
}
