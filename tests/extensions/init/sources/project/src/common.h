#pragma once
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#define CUDA_CHECK(call)                                             \
    do {                                                             \
        cudaError_t status = (call);                                 \
        if (status != cudaSuccess) {                                 \
            fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__,        \
                    cudaGetErrorString(status));                     \
            exit(EXIT_FAILURE);                                      \
        }                                                            \
    } while (0)
#define DEVICE_INLINE __device__ __forceinline__

template <class T>
T ceil_div(T a, T b) {
    return (a + b - 1) / b;
}

struct RowShape {
    int rows, cols;
    RowShape(int r, int c) : rows(r), cols(c) {}
    __host__ __device__ int elements() const { return rows * cols; }
};

inline std::vector<float> random_floats(size_t n) {
    std::vector<float> v(n);
    for (auto& x : v) x = rand() / float(RAND_MAX) * 2.0f - 1.0f;
    return v;
}
