#include "layers/activations.cuh"
#include "layers/layer_norm.cuh"

// WIDTH is 4 where rows begin on 16-byte boundaries, else 1; blocks have THREADS threads at most.
template <int ITEMS, int WIDTH, int THREADS, class Then>
__global__ void __launch_bounds__(THREADS, (WIDTH == 4 ? 1024 : 512) / THREADS)
    fused_layernorm_gelu(const float* x, const float* gamma, const float* beta, float* y, int cols, float eps) {
    layer_norm_row<ITEMS, WIDTH, Then>(x, gamma, beta, y, cols, eps);
}

template <class Then>
__global__ void __launch_bounds__(1024) fused_layernorm_gelu_two_reads(const float* x, const float* gamma,
                                                                       const float* beta, float* y, int cols,
                                                                       float eps) {
    layer_norm_long_row<Then>(x, gamma, beta, y, cols, eps);
}
