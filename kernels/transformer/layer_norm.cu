#include "layers/activations.cuh"
#include "layers/layer_norm.cuh"

// WIDTH is 4 where rows begin on 16-byte boundaries, else 1; blocks have THREADS threads at most.
template <int WIDTH, int THREADS>
constexpr int LAYER_NORM_BLOCKS = WIDTH == 4 && THREADS == 512 ? 3 - FEWER_BLOCKS : (WIDTH == 4 ? 1024 : 512) / THREADS;

template <int ITEMS, int WIDTH, int THREADS>
__global__ void __launch_bounds__(THREADS, LAYER_NORM_BLOCKS<WIDTH, THREADS>)
    layer_norm(const float* x, const float* gamma, const float* beta, float* y, int cols, float eps) {
    layer_norm_row<ITEMS, WIDTH, Identity, true>(x, gamma, beta, y, cols, eps);
}

extern "C" __global__ void __launch_bounds__(1024)
    layer_norm_two_reads(const float* x, const float* gamma, const float* beta, float* y, int cols, float eps) {
    layer_norm_long_row<Identity>(x, gamma, beta, y, cols, eps);
}
