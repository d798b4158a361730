#include "vector_load.cuh"

// y = x, four 16-byte loads in flight per thread before the first store.
extern "C" __global__ void copy(const float* x, float* y, long long n) {
    map_elements(x, y, n, [](float value) { return value; });
}

// The same with eight.
extern "C" __global__ void copy_deep(const float* x, float* y, long long n) {
    map_elements<8>(x, y, n, [](float value) { return value; });
}

// The same with ordinary accesses instead of streamed ones, one vector per thread.
extern "C" __global__ void copy_plain(const float* x, float* y, long long n) {
    const long long at = 4 * grid_thread();
    if (at + 4 <= n) store4(y + at, load4(x + at));
    else
        for (long long i = at; i < n; ++i) y[i] = x[i];
}
