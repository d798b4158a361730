#pragma once

#include "arrays/columns.cuh"

// Normalisation by stored statistics, channel by channel, followed by an activation. The mean is taken off first: folding
// it into the shift would cancel where it is large beside the deviation.

constexpr int ROWS = 2;  // of a thread, which share one fetch of the channels' parameters

struct Parameters {
    const float* gamma;
    const float* beta;
    const float* mean;
    const float* variance;
    float eps;
};

template <int WIDTH, class Then>
struct Normalise {
    Group<WIDTH> mean, scale, shift;

    __device__ Normalise(const Parameters& p, int channel) {
        mean = load_group<WIDTH>(p.mean + channel);
        scale = load_group<WIDTH>(p.gamma + channel);
        shift = load_group<WIDTH>(p.beta + channel);
        const Group<WIDTH> variance = load_group<WIDTH>(p.variance + channel);
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) scale.at[k] /= sqrtf(variance.at[k] + p.eps);
    }
    __device__ float operator()(float x, int k = 0) const {
        return Then{}(fmaf(x - mean.at[k], scale.at[k], shift.at[k]));
    }
};

/// Channels are the columns of a matrix, or PLANES of `spatial` elements. BACKWARDS takes the last rows or planes first,
/// which the L2 cache still has: keeping those that are through would push out those to come. y may be x.
template <int WIDTH, bool PLANES, class Then, bool BACKWARDS = false>
__device__ void normalise(const float* x, const Parameters& p, float* y, long long batch, int channels, int spatial) {
    if constexpr (PLANES) {
        const unsigned int block = BACKWARDS ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
        map_planes<WIDTH, !BACKWARDS>(x, y, batch * channels, channels, spatial,
                                      [&](int c) { return Normalise<1, Then>(p, c); }, block);
    } else {
        const unsigned int block = BACKWARDS ? rows_block_backwards() : rows_block();
        map_columns<WIDTH, ROWS, !BACKWARDS>(x, y, batch, channels,
                                             [&](int c) { return Normalise<WIDTH, Then>(p, c); }, block);
    }
}
