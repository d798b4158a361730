#include "arrays/columns.cuh"
#include "sums/reduce.cuh"

/// The exact step of tau dV/dt = -(V - rest) + R I over dt: decay = e^(-dt / tau), drive = R (1 - decay). A neuron that
/// spiked is held at `reset` for `hold` steps.
struct Exact {
    float decay, drive, rest, threshold, reset;
    int hold;

    __device__ float step(float v, float current, int& held, unsigned char& spike) const {
        const float next = rest + fmaf(decay, v - rest, drive * current);
        const bool resting = held > 0;
        spike = !resting && next >= threshold;
        held = resting ? held - 1 : spike ? hold : 0;
        return resting || spike ? reset : next;
    }
};

/// The older form: an echo-state unit that is set to 0 above its threshold.
struct Compat {
    float keep, threshold;

    __device__ float step(float v, float current, int&, unsigned char& spike) const {
        const float next = tanhf(fmaf(keep, v, current));
        spike = next > threshold;
        return spike ? 0.0f : next;
    }
};

/// Four neurons a thread, the last n % 4 one each; `held` is null where nothing is held.
template <class Neuron>
__device__ void step_all(const float* v, const float* current, const int* held, float* v_next, unsigned char* spikes,
                         int* held_next, long long n, Neuron neuron) {
    const long long at = grid_thread(), whole = n / 4;
    if (at < whole) {
        const float4 u = load4(v + 4 * at), i = load4(current + 4 * at);
        int4 h = {0, 0, 0, 0};
        if (held != nullptr) h = reinterpret_cast<const int4*>(held)[at];
        uchar4 spike;
        float4 next;
        next.x = neuron.step(u.x, i.x, h.x, spike.x);
        next.y = neuron.step(u.y, i.y, h.y, spike.y);
        next.z = neuron.step(u.z, i.z, h.z, spike.z);
        next.w = neuron.step(u.w, i.w, h.w, spike.w);
        store4(v_next + 4 * at, next);
        reinterpret_cast<uchar4*>(spikes)[at] = spike;
        if (held != nullptr) reinterpret_cast<int4*>(held_next)[at] = h;
    } else if (const long long k = 4 * whole + (at - whole); k < n) {
        int h = held != nullptr ? held[k] : 0;
        v_next[k] = neuron.step(v[k], current[k], h, spikes[k]);
        if (held != nullptr) held_next[k] = h;
    }
}

extern "C" __global__ void leaky_integrate_fire(const float* v, const float* current, const int* held, float* v_next,
                                                unsigned char* spikes, int* held_next, long long n, float decay,
                                                float drive, float rest, float threshold, float reset, int hold) {
    step_all(v, current, held, v_next, spikes, held_next, n, Exact{decay, drive, rest, threshold, reset, hold});
}

extern "C" __global__ void leaky_integrate_fire_unheld(const float* v, const float* current, float* v_next,
                                                       unsigned char* spikes, long long n, float decay, float drive,
                                                       float rest, float threshold, float reset) {
    step_all(v, current, nullptr, v_next, spikes, nullptr, n, Exact{decay, drive, rest, threshold, reset, 0});
}

extern "C" __global__ void leaky_integrate_fire_compat(const float* v, const float* current, float* v_next,
                                                       unsigned char* spikes, long long n, float keep,
                                                       float threshold) {
    step_all(v, current, nullptr, v_next, spikes, nullptr, n, Compat{keep, threshold});
}

// `steps` steps in one launch: current and spikes are [steps, n]. WIDTH is 4 where n is a multiple of it, else 1.
template <int WIDTH>
__global__ void __launch_bounds__(256)
    leaky_integrate_fire_steps(const float* __restrict__ v, const float* __restrict__ current,
                               const int* __restrict__ held, float* v_next, unsigned char* spikes, int* held_next,
                               long long n, int steps, float decay, float drive, float rest, float threshold,
                               float reset, int hold) {
    const Exact neuron = {decay, drive, rest, threshold, reset, hold};
    const long long at = WIDTH * grid_thread();
    if (at >= n) return;
    Group<WIDTH> own = load_group<WIDTH>(v + at);
    int left[WIDTH];
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) left[k] = held[at + k];
#pragma unroll 4
    for (int step = 0; step < steps; ++step) {
        const Group<WIDTH> input = load_group<WIDTH>(current + step * n + at);
        unsigned char spike[4];
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) own.at[k] = neuron.step(own.at[k], input.at[k], left[k], spike[k]);
        if constexpr (WIDTH == 4)
            *reinterpret_cast<uchar4*>(spikes + step * n + at) = make_uchar4(spike[0], spike[1], spike[2], spike[3]);
        else spikes[step * n + at] = spike[0];
    }
    store_group(v_next + at, own);
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) held_next[at + k] = left[k];
}

// The spikes of 32 neurons in one word, the first in its lowest bit. Four neurons a thread; the last n % 4 one by one.
extern "C" __global__ void leaky_integrate_fire_bits(const float* v, const float* current, const int* held, float* v_next,
                                                     unsigned int* spikes, int* held_next, long long n, float decay,
                                                     float drive, float rest, float threshold, float reset, int hold) {
    const Exact neuron = {decay, drive, rest, threshold, reset, hold};
    const long long at = 4 * grid_thread();
    unsigned char spike[4] = {};
    if (at + 4 <= n) {
        const float4 u = load4(v + at), i = load4(current + at);
        int4 h = *reinterpret_cast<const int4*>(held + at);
        const float4 next = make_float4(neuron.step(u.x, i.x, h.x, spike[0]), neuron.step(u.y, i.y, h.y, spike[1]),
                                        neuron.step(u.z, i.z, h.z, spike[2]), neuron.step(u.w, i.w, h.w, spike[3]));
        store4(v_next + at, next);
        *reinterpret_cast<int4*>(held_next + at) = h;
    } else {
        for (int k = 0; at + k < n; ++k) {
            int h = held[at + k];
            v_next[at + k] = neuron.step(v[at + k], current[at + k], h, spike[k]);
            held_next[at + k] = h;
        }
    }
    const int lane = threadIdx.x % 8;
    unsigned int word = (spike[0] | spike[1] << 1 | spike[2] << 2 | spike[3] << 3) << 4 * lane;
    for (int mask = 1; mask < 8; mask *= 2) word |= shuffle_xor(word, mask);
    if (lane == 0 && at < n) spikes[at / 32] = word;
}
