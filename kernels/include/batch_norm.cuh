#pragma once

#include "columns.cuh"

// Normalisation by stored statistics, channel by channel, followed by an activation. The mean is taken off first: folding
// it into the shift would cancel where it is large beside the deviation.

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

/// Channels are the columns of a matrix, or PLANES of `spatial` elements, `parts` blocks each. `block` is this block's
/// place. y may be x.
template <int WIDTH, bool PLANES, class Then>
__device__ void normalise(const float* x, const Parameters& p, float* y, long long batch, int channels, int spatial,
                          int parts, unsigned int block = blockIdx.x) {
    if constexpr (PLANES)
        map_planes<WIDTH>(x, y, channels, spatial, parts, [&](int c) { return Normalise<1, Then>(p, c); }, block);
    else map_columns<WIDTH, 8>(x, y, batch, channels, [&](int c) { return Normalise<WIDTH, Then>(p, c); }, block);
}
