#include "layers/activations.cuh"
#include "layers/batch_norm.cuh"

// WIDTH is 4 where the rows of the matrix, or the PLANES, are whole groups of four, else 1.
template <int WIDTH, bool PLANES>
__global__ void fused_batchnorm_relu(const float* x, const float* gamma, const float* beta, const float* mean,
                                     const float* variance, float* y, float eps, long long batch, int channels,
                                     int spatial) {
    normalise<WIDTH, PLANES, Relu>(x, {gamma, beta, mean, variance, eps}, y, batch, channels, spatial);
}

template <int WIDTH, bool PLANES>
__global__ void fused_batchnorm_relu_in_place(float* x, const float* gamma, const float* beta, const float* mean,
                                              const float* variance, float eps, long long batch, int channels,
                                              int spatial) {
    normalise<WIDTH, PLANES, Relu>(x, {gamma, beta, mean, variance, eps}, x, batch, channels, spatial);
}
