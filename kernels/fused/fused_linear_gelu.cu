#include "products/gemm.cuh"
#include "tensor_cores/tensor_product.cuh"

extern __shared__ __align__(128) unsigned char stages[];

/// y = F(x w + bias), a tile per block; w is [inputs, outputs], or [outputs, inputs] where it is TURNED.
template <class T, int WIDTH, bool TURNED, class F>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
fused_linear_gelu(const float* x, const float* w, const float* bias, float* y, int batch, int outputs, int inputs) {
    multiply_matrices<T, WIDTH, TURNED>(x, w, bias, y, batch, outputs, inputs, F{});
}

/// The same on the tensor cores, with operands as T::Element says; bias and y are FP32.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, int WIDTH, class F>
CLUSTERED(T) __global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
fused_linear_gelu_tensor(__grid_constant__ const OperandOf<T> x, __grid_constant__ const OperandOf<T> w, const float* bias,
                         __grid_constant__ const SumsOf<T> y, int batch, int outputs, int inputs) {
    multiply_on_tensor_cores<T, LEFT_ALONG, RIGHT_ALONG, WIDTH>(x, w, bias, y, batch, outputs, inputs, stages, F{});
}
