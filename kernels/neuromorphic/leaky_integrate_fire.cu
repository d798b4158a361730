#include "vector_load.cuh"

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
