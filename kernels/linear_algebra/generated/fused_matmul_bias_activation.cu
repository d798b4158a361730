// Written by `prism-bench fuse` from fused_matmul_bias_activation.py: change that and run it again.
#include "layers/activations.cuh"
#include "products/gemm.cuh"
#include "tensor_cores/tensor_product.cuh"

// Stages: product, y.
template <class T, int WIDTH, class Activation>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
    fused_matmul_bias_activation_generated(const float* x, const float* w, const float* bias, float* y, int batch,
                                           int outputs, int inputs) {
    const auto epilogue = [](float sums) { return Activation{}(sums); };
    multiply_matrices<T, WIDTH, false>(x, w, bias, y, batch, outputs, inputs, epilogue);
}

extern __shared__ __align__(128) unsigned char stages[];

template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, int WIDTH, class Activation>
CLUSTERED(T) __global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
    fused_matmul_bias_activation_generated_tensor(__grid_constant__ const OperandOf<T> x,
                                                  __grid_constant__ const OperandOf<T> w, const float* bias,
                                                  __grid_constant__ const SumsOf<T> y, int batch, int outputs,
                                                  int inputs) {
    const auto epilogue = [](float sums) { return Activation{}(sums); };
    multiply_on_tensor_cores<T, LEFT_ALONG, RIGHT_ALONG, WIDTH>(x, w, bias, y, batch, outputs, inputs, stages, epilogue);
}
