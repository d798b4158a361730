#include "gemm.cuh"

/// y = F(x w + bias), a tile per block; w is [inputs, outputs], or [outputs, inputs] where it is TURNED.
template <class T, int WIDTH, bool TURNED, class F>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
fused_linear_gelu(const float* x, const float* w, const float* bias, float* y, int batch, int outputs, int inputs) {
    multiply_matrices<T, WIDTH, TURNED>(x, w, bias, y, batch, outputs, inputs, F{});
}
