#include "gemm.cuh"

/// c = max(a b, 0), a tile per block; NaN stays.
template <class T, int WIDTH>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
fused_matmul_relu(const float* a, const float* b, float* c, int m, int n, int k) {
    multiply_matrices<T, WIDTH, false>(a, b, nullptr, c, m, n, k, Relu{});
}
