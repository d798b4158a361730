#include "sums/row_sums.cuh"

// The entropy production of n particles, (1/T) sum of gamma v^2; with EXCESS v^2 - k_B T / m stands for v^2.

__device__ unsigned int arrived;

// `value` to about twice a float's precision.
struct Pair {
    float high, low;

    __device__ explicit Pair(double value)
        : high(static_cast<float>(value)), low(isfinite(high) ? static_cast<float>(value - high) : 0.0f) {}
};

template <int ARRAYS, class... Arrays, class F>
__device__ void sum_terms(F term, float* rate, double factor, double* by_block, long long n, const Arrays*... arrays) {
    PartialSums<1> partial;
    double sum[1] = {};
    const auto settle = [&] {
        double tile[1];
        partial.total(tile);
        sum[0] += tile[0];
        partial = {};
    };
    const auto add = [&](const float(&x)[ARRAYS], int slot) { partial.add(0, slot, term(x)); };
    visit_row_settled<4 / ARRAYS>(n, add, settle, arrays...);
    settle();
    if (row_sums(sum, by_block, &arrived)) *rate = static_cast<float>(factor * sum[0]);
}

// One friction and one mass. Velocities are scaled by a power of two so that squares are near the terms of the result:
// nothing overflows that the result does not.
template <bool EXCESS>
__global__ void __launch_bounds__(512, 4) entropy_production(const float* v, float* rate, double* by_block, long long n,
                                                             double gamma, double mass, double temperature, double boltzmann) {
    const double weight = gamma / temperature;
    const double scale = ldexp(1.0, weight > 0.0 ? max(-100, min(100, ilogb(weight) / 2)) : 0);
    const Pair equilibrium(boltzmann * temperature / mass * scale * scale);
    const auto term = [&, by = static_cast<float>(scale)](const float(&x)[1]) {
        const float scaled = by * x[0];
        return EXCESS ? fmaf(scaled, scaled, -equilibrium.high) - equilibrium.low : scaled * scaled;
    };
    sum_terms<1>(term, rate, weight / (scale * scale), by_block, n, v);
}

// A friction for every particle.
template <bool EXCESS>
__global__ void __launch_bounds__(512)
    entropy_production_frictions(const float* v, const float* gamma, float* rate, double* by_block, long long n,
                                 double mass, double temperature, double boltzmann) {
    const Pair equilibrium(boltzmann * temperature / mass);
    const auto term = [&](const float(&x)[2]) {
        return EXCESS ? x[1] * (fmaf(x[0], x[0], -equilibrium.high) - equilibrium.low) : x[1] * x[0] * x[0];
    };
    sum_terms<2>(term, rate, 1.0 / temperature, by_block, n, v, gamma);
}

// The excess with a friction and a mass for every particle. The rounding of k_B T / m is made up for.
extern "C" __global__ void __launch_bounds__(512)
    entropy_production_masses(const float* v, const float* gamma, const float* mass, float* rate, double* by_block,
                              long long n, double temperature, double boltzmann) {
    const Pair energy(boltzmann * temperature);
    const auto term = [&](const float(&x)[3]) {
        const float equilibrium = __fdividef(energy.high, x[2]);
        const float rest = __fdividef(fmaf(-equilibrium, x[2], energy.high) + energy.low, x[2]);
        return x[1] * (fmaf(x[0], x[0], -equilibrium) - rest);
    };
    sum_terms<3>(term, rate, 1.0 / temperature, by_block, n, v, gamma, mass);
}
