#include "products/gemm.cuh"
#include "tensor_cores/tensor_product.cuh"

extern __shared__ __align__(128) unsigned char stages[];

/// c = max(a b, 0), a tile per block; NaN stays.
template <class T, int WIDTH>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
fused_matmul_relu(const float* a, const float* b, float* c, int m, int n, int k) {
    multiply_matrices<T, WIDTH, false>(a, b, nullptr, c, m, n, k, Relu{});
}

/// The same on the tensor cores, with operands as T::Element says.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, int WIDTH>
CLUSTERED(T) __global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
fused_matmul_relu_tensor(__grid_constant__ const OperandOf<T> a, __grid_constant__ const OperandOf<T> b,
                         __grid_constant__ const SumsOf<T> c, int m, int n, int k) {
    multiply_on_tensor_cores<T, LEFT_ALONG, RIGHT_ALONG, WIDTH>(a, b, nullptr, c, m, n, k, stages, Relu{});
}
