#include "gemm.cuh"

/// y = max(x w + bias, 0), a tile per block; w is [inputs, outputs], or [outputs, inputs] where it is TURNED.
template <class T, int WIDTH, bool TURNED>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
fused_linear_relu(const float* x, const float* w, const float* bias, float* y, int batch, int outputs, int inputs) {
    multiply_matrices<T, WIDTH, TURNED>(x, w, bias, y, batch, outputs, inputs, Relu{});
}
