#include "vector_load.cuh"

/// The change of a weight for a post-synaptic spike `apart` ms after the pre-synaptic one, and its bounds. `rise` and
/// `fall` hold the learning rate, speeds are -log2(e) / tau.
template <bool SOFT>
struct Plasticity {
    float rise, fall, rise_speed, fall_speed, low, high;

    __device__ float operator()(float w, float apart) const {
        const bool later = apart > 0.0f;
        const float decay = exp2f(fabsf(apart) * (later ? rise_speed : fall_speed));
        float change = later ? rise * decay : apart < 0.0f ? -fall * decay : 0.0f;
        if constexpr (SOFT) change *= later ? high - w : w - low;
        const float next = w + change;  // NaN stays NaN
        return next < low ? low : next > high ? high : next;
    }
};

// w[post, pre] of the pairs in which both neurons have spiked; other weights are not touched. A block takes 1024 (or
// 256) columns of one row; blocks next to each other take the same columns, whose times stay in the L1 cache.
template <bool SOFT, int WIDTH>
__global__ void __launch_bounds__(256)
    stdp_update(float* w, const float* post_time, const unsigned char* post_spiked, const float* pre_time,
                const unsigned char* pre_spiked, int pre, float rise, float fall, float rise_speed, float fall_speed,
                float low, float high) {
    if (!post_spiked[blockIdx.x]) return;
    const Plasticity<SOFT> plasticity = {rise, fall, rise_speed, fall_speed, low, high};
    const int at = (blockIdx.y * blockDim.x + threadIdx.x) * WIDTH;
    if (at >= pre) return;
    const float time = post_time[blockIdx.x];
    float* const weight = w + static_cast<long long>(blockIdx.x) * pre + at;
    if constexpr (WIDTH == 4) {
        const uchar4 spiked = *reinterpret_cast<const uchar4*>(pre_spiked + at);
        if (!(spiked.x | spiked.y | spiked.z | spiked.w)) return;
        const float4 from = load4(pre_time + at);
        float4 v = load4(weight);
        if (spiked.x) v.x = plasticity(v.x, time - from.x);
        if (spiked.y) v.y = plasticity(v.y, time - from.y);
        if (spiked.z) v.z = plasticity(v.z, time - from.z);
        if (spiked.w) v.w = plasticity(v.w, time - from.w);
        store4(weight, v);
    } else if (pre_spiked[at]) {
        *weight = plasticity(*weight, time - pre_time[at]);
    }
}
