#include "layers/activations.cuh"
#include "layers/batch_norm.cuh"
#include "sums/moments.cuh"

// WIDTH is 4 where the rows of the matrix, or the PLANES, are whole groups of four, else 1.
template <int WIDTH, bool PLANES>
__global__ void batch_norm(const float* x, const float* gamma, const float* beta, const float* mean,
                           const float* variance, float* y, float eps, long long batch, int channels, int spatial) {
    normalise<WIDTH, PLANES, Identity>(x, {gamma, beta, mean, variance, eps}, y, batch, channels, spatial);
}

template <int WIDTH, bool PLANES>
__global__ void batch_norm_in_place(float* x, const float* gamma, const float* beta, const float* mean,
                                    const float* variance, float eps, long long batch, int channels, int spatial) {
    normalise<WIDTH, PLANES, Identity>(x, {gamma, beta, mean, variance, eps}, x, batch, channels, spatial);
}

// The last rows or planes first: when the moments have just been taken, the L2 cache still has these.
template <int WIDTH, bool PLANES>
__global__ void batch_norm_backwards(const float* x, const float* gamma, const float* beta, const float* mean,
                                     const float* variance, float* y, float eps, long long batch, int channels,
                                     int spatial) {
    normalise<WIDTH, PLANES, Identity, true>(x, {gamma, beta, mean, variance, eps}, y, batch, channels, spatial);
}

// Training, first step: the moments of each channel's values in one of `gridDim.y` shares of the rows, at
// partial[share][channel]. Blocks are 32 groups of columns by 8 rows; those next to each other continue the rows.
template <int WIDTH>
__global__ void column_moments(const float* x, double* partial, long long batch, int channels) {
    __shared__ Moments by_row[8][32 * WIDTH];
    const int column = WIDTH * (blockIdx.x * blockDim.x + threadIdx.x);
    PivotSums own[WIDTH];
    const auto add = [&](const Group<WIDTH>& v) {
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) own[k].add(v.at[k]);
    };
    const long long step = gridDim.y * 8, rows = column < channels ? batch : 0;
    const auto at = [&](long long row) { return load_group<WIDTH>(x + row * channels + column); };
    long long row = blockIdx.y * 8 + threadIdx.y;
    for (; row + 3 * step < rows; row += 4 * step) {
        const Group<WIDTH> v[4] = {at(row), at(row + step), at(row + 2 * step), at(row + 3 * step)};
#pragma unroll
        for (int r = 0; r < 4; ++r) add(v[r]);
    }
    for (; row < rows; row += step) add(at(row));
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) by_row[threadIdx.y][WIDTH * threadIdx.x + k] = own[k].moments();
    __syncthreads();
    const int mine = 32 * threadIdx.y + threadIdx.x, channel = 32 * WIDTH * blockIdx.x + mine;
    if (mine >= 32 * WIDTH || channel >= channels) return;
    const auto row_of = [&](int r) { return by_row[r][mine]; };
    store_moments(partial, static_cast<long long>(blockIdx.y) * channels + channel, merged_moments(8, row_of));
}

// The same for planes: the blocks of channel blockIdx.x share the batch.
template <int WIDTH>
__global__ void plane_moments(const float* x, double* partial, long long batch, int channels, int spatial) {
    PivotSums own;
    for (long long image = blockIdx.y; image < batch; image += gridDim.y) {
        const float* const plane = x + (image * channels + blockIdx.x) * spatial;
#pragma unroll 4
        for (int at = WIDTH * threadIdx.x; at < spatial; at += WIDTH * blockDim.x) {
            const Group<WIDTH> v = load_group<WIDTH>(plane + at);
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) own.add(v.at[k]);
        }
    }
    const Moments all = block_moments(own.moments());
    if (threadIdx.x == 0) store_moments(partial, static_cast<long long>(blockIdx.y) * channels + blockIdx.x, all);
}

/// What the last step takes for mean, variance and shift. What rounding takes off the mean goes into the shift.
struct BatchStatistics {
    float mean, variance, shift;

    __device__ BatchStatistics(const Moments& all, float gamma, float beta, float eps) {
        mean = static_cast<float>(all.mean), variance = static_cast<float>(all.squares / all.count);
        const float lost = static_cast<float>(all.mean - mean), scale = gamma / sqrtf(variance + eps);
        shift = isinf(scale) ? beta : fmaf(-lost, scale, beta);  // what is infinite has no rounding to undo
    }
};

__device__ inline void update_running(float* mean, float* variance, const Moments& all, float of_batch, float momentum) {
    const float unbiased = static_cast<float>(all.squares / (all.count - 1.0)), kept = 1.0f - momentum;
    *mean = fmaf(momentum, of_batch, kept * *mean);
    *variance = fmaf(momentum, unbiased, kept * *variance);
}

// All steps of a small matrix: a block of 32 channels by 8 walkers keeps its values in registers, EACH a thread.
template <int EACH>
__global__ void __launch_bounds__(256)
    batch_norm_few(const float* x, const float* gamma, const float* beta, float* running_mean, float* running_variance,
                   float* y, float eps, float momentum, long long batch, int channels) {
    __shared__ Moments by_row[8][32];
    const int c = blockIdx.x * 32 + threadIdx.x, walker = threadIdx.y, rows = c < channels ? static_cast<int>(batch) : 0;
    const long long first = static_cast<long long>(walker) * channels + c, step = 8ll * channels;
    float v[EACH];
#pragma unroll
    for (int r = 0; r < EACH; ++r)
        if (walker + 8 * r < rows) v[r] = x[first + r * step];
    PivotSums own;
#pragma unroll
    for (int r = 0; r < EACH; ++r)
        if (walker + 8 * r < rows) own.add(v[r]);
    by_row[walker][threadIdx.x] = own.moments();
    __syncthreads();
    if (c >= channels) return;
    const Moments all = merged_moments(8, [&](int r) { return by_row[r][threadIdx.x]; });
    const BatchStatistics of(all, gamma[c], beta[c], eps);
    if (walker == 0) update_running(running_mean + c, running_variance + c, all, of.mean, momentum);
    const float scale = gamma[c] / sqrtf(of.variance + eps);
#pragma unroll
    for (int r = 0; r < EACH; ++r)
        if (walker + 8 * r < rows) y[first + r * step] = fmaf(v[r] - of.mean, scale, of.shift);
}

constexpr int LANES = 16;  // threads that share a channel's shares

// Second step: statistics of the batch for the last step, and the running ones. Blocks are 32 channels by LANES.
extern "C" __global__ void batch_statistics(const double* partial, const float* gamma, const float* beta,
                                            float* running_mean, float* running_variance, float* batch_mean,
                                            float* batch_variance, float* batch_shift, float eps, float momentum,
                                            int channels, int shares) {
    __shared__ Moments by_lane[LANES][32];
    const int c = blockIdx.x * 32 + threadIdx.x, lane = threadIdx.y;
    const auto share_of = [&](int i) { return load_moments(partial, (lane + LANES * i) * static_cast<long long>(channels) + c); };
    const int mine = c < channels ? (shares - lane + LANES - 1) / LANES : 0;
    by_lane[lane][threadIdx.x] = mine > 0 ? merged_moments(mine, share_of) : Moments{0.0, 0.0, 0.0};
    __syncthreads();
    if (lane > 0 || c >= channels) return;
    const Moments all = merged_moments(LANES, [&](int l) { return by_lane[l][threadIdx.x]; });
    const BatchStatistics of(all, gamma[c], beta[c], eps);
    batch_mean[c] = of.mean, batch_variance[c] = of.variance, batch_shift[c] = of.shift;
    update_running(running_mean + c, running_variance + c, all, of.mean, momentum);
}
