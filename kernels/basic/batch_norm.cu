#include "activations.cuh"
#include "batch_norm.cuh"

// WIDTH is 4 where the rows of the matrix, or the PLANES, are whole groups of four, else 1.
template <int WIDTH, bool PLANES>
__global__ void batch_norm(const float* x, const float* gamma, const float* beta, const float* mean,
                           const float* variance, float* y, float eps, long long batch, int channels, int spatial,
                           int parts) {
    normalise<WIDTH, PLANES, Identity>(x, {gamma, beta, mean, variance, eps}, y, batch, channels, spatial, parts);
}

template <int WIDTH, bool PLANES>
__global__ void batch_norm_in_place(float* x, const float* gamma, const float* beta, const float* mean,
                                    const float* variance, float eps, long long batch, int channels, int spatial,
                                    int parts) {
    normalise<WIDTH, PLANES, Identity>(x, {gamma, beta, mean, variance, eps}, x, batch, channels, spatial, parts);
}
