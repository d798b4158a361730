#include "products/gemm.cuh"
#include "tensor_cores/tensor_product.cuh"

extern __shared__ __align__(128) unsigned char stages[];

/// c = a b, a tile per block.
template <class T, int WIDTH>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    multiply_matrices<T, WIDTH, false>(a, b, nullptr, c, m, n, k, Identity{});
}

/// The same on the tensor cores, operands rounded to TF32.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, int WIDTH>
CLUSTERED(T) __global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
matmul_tf32(__grid_constant__ const OperandOf<T> a, __grid_constant__ const OperandOf<T> b,
            __grid_constant__ const SumsOf<T> c, int m, int n, int k) {
    multiply_on_tensor_cores<T, LEFT_ALONG, RIGHT_ALONG, WIDTH>(a, b, nullptr, c, m, n, k, stages, Identity{});
}

extern "C" __global__ void matmul_naive(const float* a, const float* b, float* c, int m, int n, int k) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    const float* const line = a + static_cast<long long>(row) * k;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum = fmaf(line[i], b[static_cast<long long>(i) * n + col], sum);
    c[static_cast<long long>(row) * n + col] = sum;
}
