#include "arrays/columns.cuh"
#include "tensor_cores/ptx.cuh"

/// The change of a weight for a post-synaptic spike `apart` ms after the pre-synaptic one, and its bounds. `rise` and
/// `fall` hold the learning rate, speeds are -log2(e) / tau.
template <bool SOFT>
struct Plasticity {
    float rise, fall, rise_speed, fall_speed, low, high;

    /// Written without branches, for what is not taken costs less than the branch.
    __device__ float operator()(float w, float apart) const {
        const bool later = apart > 0.0f;
        const float decay = exp2_fast(fabsf(apart) * (later ? rise_speed : fall_speed));
        float gain = later ? rise : -fall;
        if constexpr (SOFT) gain *= later ? high - w : w - low;
        float next = apart == 0.0f ? w : fmaf(gain, decay, w);  // NaN stays NaN
        next = next < low ? low : next;
        return next > high ? high : next;
    }
};

/// Flags of a byte each, WIDTH side by side.
template <int WIDTH>
struct Flags {
    unsigned int bytes;

    __device__ explicit Flags(const unsigned char* from) {
        if constexpr (WIDTH == 4) bytes = *reinterpret_cast<const unsigned int*>(from);
        else bytes = *from;
    }
    __device__ bool any() const { return bytes != 0; }
    __device__ bool at(int k) const { return (bytes >> 8 * k & 255) != 0; }
};

/// The group of weights of the synapses from the neurons of `spiked`, that spiked at `from`, to one that spiked at `time`.
template <bool SOFT, int WIDTH>
__device__ void change(Group<WIDTH>& w, Plasticity<SOFT> plasticity, Flags<WIDTH> spiked, const Group<WIDTH>& from,
                       float time) {
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) {
        const float next = plasticity(w.at[k], time - from.at[k]);
        w.at[k] = spiked.at(k) ? next : w.at[k];
    }
}

// w[post, pre] of the pairs in which both neurons have spiked; other weights are not written. A thread takes WIDTH
// columns of ROWS rows, whose weights are all on their way before the first is changed.
template <bool SOFT, int WIDTH, int ROWS>
__global__ void __launch_bounds__(256)
    stdp_update(float* w, const float* __restrict__ post_time, const unsigned char* __restrict__ post_spiked,
                const float* __restrict__ pre_time, const unsigned char* __restrict__ pre_spiked, int post, int pre,
                float rise, float fall, float rise_speed, float fall_speed, float low, float high) {
    const Plasticity<SOFT> plasticity = {rise, fall, rise_speed, fall_speed, low, high};
    const int column = first_column<WIDTH>(), first = static_cast<int>(rows_block()) * ROWS;
    if (column >= pre) return;
    const Flags<WIDTH> spiked(pre_spiked + column);
    if (!spiked.any()) return;
    bool taking_part[ROWS];
    Group<WIDTH> v[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) taking_part[r] = first + r < post && post_spiked[min(first + r, post - 1)] != 0;
    float* const from_row = w + static_cast<long long>(first) * pre + column;
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        if (taking_part[r]) v[r] = load_kept<WIDTH>(from_row + static_cast<long long>(r) * pre);
    const Group<WIDTH> from = load_group<WIDTH>(pre_time + column);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (!taking_part[r]) continue;
        change(v[r], plasticity, spiked, from, post_time[first + r]);
        store_group(from_row + static_cast<long long>(r) * pre, v[r]);
    }
}

// The same where few neurons have spiked: seldom more than one row of a thread takes part, so there is little to load ahead,
// and small blocks, most of which have nothing to do, end sooner. gridDim.x covers the rows.
template <bool SOFT, int WIDTH, int ROWS>
__global__ void __launch_bounds__(128)
    stdp_update_sparse(float* w, const float* __restrict__ post_time, const unsigned char* __restrict__ post_spiked,
                       const float* __restrict__ pre_time, const unsigned char* __restrict__ pre_spiked, int post, int pre,
                       float rise, float fall, float rise_speed, float fall_speed, float low, float high) {
    const Plasticity<SOFT> plasticity = {rise, fall, rise_speed, fall_speed, low, high};
    const int column = WIDTH * (blockIdx.y * blockDim.x + threadIdx.x), first = blockIdx.x * ROWS;
    if (column >= pre) return;
    const Flags<WIDTH> spiked(pre_spiked + column);
    if (!spiked.any()) return;
    const Group<WIDTH> from = load_group<WIDTH>(pre_time + column);
    float time[ROWS];
    bool taking_part[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int row = min(first + r, post - 1);
        time[r] = post_time[row];
        taking_part[r] = (first + r < post) & (post_spiked[row] != 0);
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (!taking_part[r]) continue;
        float* const at = w + static_cast<long long>(first + r) * pre + column;
        Group<WIDTH> v = load_group<WIDTH>(at);
        change(v, plasticity, spiked, from, time[r]);
        store_group(at, v);
    }
}
