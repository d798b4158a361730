#include "arrays/amplitudes.cuh"

constexpr float ROOT_HALF = 0.70710678118654752f;

struct HadamardWithin {
    __device__ float4 operator()(float4 v) const {
        return make_float4(ROOT_HALF * (v.x + v.z), ROOT_HALF * (v.y + v.w), ROOT_HALF * (v.x - v.z),
                           ROOT_HALF * (v.y - v.w));
    }
};

struct HadamardPartners {
    __device__ float4 operator()(float4 own, float4 partner, bool upper) const {
        return map4(own, partner, [=](float a, float b) { return ROOT_HALF * (upper ? b - a : a + b); });
    }
};

extern "C" __global__ void hadamard_gate(float4* psi, long long states, int qubit) {
    if (qubit == 0) map_amplitudes<true>(psi, states / 2, Every{}, HadamardWithin{});
    else map_partners<true>(psi, states / 2, qubit - 1, Every{}, HadamardPartners{});
}

// Hadamard gates on the qubits `qubit` to `qubit` + 2, qubit > 0, in one pass: eight vectors a thread.
extern "C" __global__ void hadamard_three(float4* psi, long long states, int qubit) {
    const long long i = grid_thread(), apart = 1ll << (qubit - 1);
    if (i >= states / 16) return;
    const long long low = i & (apart - 1);
    float4* const first = psi + (i - low) * 8 + low;
    const HadamardPartners gate;
    float4 v[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = first[k * apart];
#pragma unroll
    for (int bit = 1; bit < 8; bit *= 2)
#pragma unroll
        for (int k = 0; k < 8; ++k)
            if (!(k & bit)) {
                const float4 a = v[k], b = v[k | bit];
                v[k] = gate(a, b, false);
                v[k | bit] = gate(b, a, true);
            }
#pragma unroll
    for (int k = 0; k < 8; ++k) first[k * apart] = v[k];
}
