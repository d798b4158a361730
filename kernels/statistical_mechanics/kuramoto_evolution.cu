#include "products/row_dots.cuh"

// Coupled phase oscillators. With s = sin(theta) and c = cos(theta), sum_j A_ij sin(theta_j - theta_i) is
// c_i (A s)_i - s_i (A c)_i: the coupling is two products with one reading of A.

/// theta modulo 2 pi in [0, 2 pi), to float precision for phases up to 1e7 or so; NaN for infinite ones.
__device__ inline float wrapped(float theta) {
    const float turns = floorf(theta * 0.15915494309f);
    float rest = fmaf(-turns, 6.28318548202514648f, theta);
    rest = fmaf(-turns, -1.74845553146474063e-7f, rest);
    if (rest < 0.0f) rest += 6.28318548f;
    return rest >= 6.28318501f ? 0.0f : rest;
}

/// The phase after a step of the length dt at that rate; wrapped before too, for the digits of a long phase.
__device__ inline float advanced(float theta, float dt, float rate) {
    return wrapped(fmaf(dt, rate, wrapped(theta)));
}

/// Where Runge-Kutta's stage begins, as a share of dt, and its weight in the step.
struct Stage {
    float reach, weight;
};

__device__ inline Stage stage_of(int stage) {
    return {stage == 0 ? 0.0f : stage == 3 ? 1.0f : 0.5f, stage == 0 || stage == 3 ? 1.0f / 6.0f : 1.0f / 3.0f};
}

/// The sines and cosines of the phases at which a stage takes the rate; `rate` is that of the stage before.
extern "C" __global__ void kuramoto_sines(const float* theta, float* sines, float* cosines, const float* rate, int n,
                                          float dt, int stage) {
    const int i = static_cast<int>(grid_thread());
    if (i >= n) return;
    const float reach = dt * stage_of(stage).reach;
    sincosf(stage == 0 ? theta[i] : fmaf(reach, rate[i], wrapped(theta[i])), sines + i, cosines + i);
}

// The rates of ROWS oscillators from one reading of their rows. EULER ends the step; otherwise `mean` gathers the rates
// of four stages, and the last one ends it.
template <int ROWS, int WIDTH, bool EULER, int STAGE>
__global__ void __launch_bounds__(256)
    kuramoto_evolution(const float* theta, const float* omega, const float* coupling, float* theta_next,
                       const float* sines, const float* cosines, float* rate, float* mean, int n, float strength,
                       float dt) {
    const long long first = static_cast<long long>(blockIdx.x) * ROWS;
    float sum[ROWS][2] = {};
    add_row_dots<WIDTH>(coupling + first * n, static_cast<long long>(n), n - first, static_cast<int>(threadIdx.x),
                        static_cast<int>(blockDim.x), n, {sines, cosines}, sum);
    block_totals(sum);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const long long i = first + r;
        if (threadIdx.x != r || i >= n) continue;
        const float pull = cosines[i] * sum[r][0] - sines[i] * sum[r][1];
        const float now = fmaf(strength, pull, omega[i]);
        if constexpr (EULER) {
            theta_next[i] = advanced(theta[i], dt, now);
        } else {
            const float gathered = fmaf(stage_of(STAGE).weight, now, STAGE == 0 ? 0.0f : mean[i]);
            if (STAGE == 3) theta_next[i] = advanced(theta[i], dt, gathered);
            rate[i] = now;
            mean[i] = gathered;
        }
    }
}

// One thread per oscillator and a sine per pair: the definition as it stands.
extern "C" __global__ void kuramoto_naive(const float* theta, const float* omega, const float* coupling,
                                          float* theta_next, int n, float strength, float dt) {
    const int i = static_cast<int>(grid_thread());
    if (i >= n) return;
    const float own = theta[i];
    const float* const row = coupling + static_cast<long long>(i) * n;
    float pull = 0.0f;
    for (int j = 0; j < n; ++j) pull = fmaf(row[j], sinf(theta[j] - own), pull);
    theta_next[i] = advanced(own, dt, fmaf(strength, pull, omega[i]));
}

__device__ unsigned int arrived;

/// The means of sine and cosine, field[0] and field[1], by the last block to finish.
extern "C" __global__ void __launch_bounds__(512)
    kuramoto_field(const float* theta, double* by_block, float* field, long long n) {
    float sine[4] = {}, cosine[4] = {};
    visit_elements<2>(theta, n, [&](float phase, int slot) {
        float s, c;
        sincosf(phase, &s, &c);
        sine[slot] += s;
        cosine[slot] += c;
    });
    const double sines = block_sum(static_cast<double>((sine[0] + sine[1]) + (sine[2] + sine[3])));
    const double cosines = block_sum(static_cast<double>((cosine[0] + cosine[1]) + (cosine[2] + cosine[3])));
    if (threadIdx.x == 0) by_block[2 * blockIdx.x] = sines, by_block[2 * blockIdx.x + 1] = cosines;
    if (!last_block(&arrived)) return;
    double total[2] = {};
    for (unsigned int b = threadIdx.x; b < 2 * gridDim.x; b += blockDim.x) total[b % 2] += __ldcg(by_block + b);
    const double all_sines = block_sum(total[0]), all_cosines = block_sum(total[1]);
    if (threadIdx.x == 0) field[0] = all_sines / n, field[1] = all_cosines / n;
}

/// Both at once for no more oscillators than a block has threads.
extern "C" __global__ void __launch_bounds__(1024)
    kuramoto_mean_field_few(const float* theta, const float* omega, float* theta_next, long long n, float K, float dt) {
    const int i = static_cast<int>(threadIdx.x);
    const bool here = i < n;
    const float phase = here ? theta[i] : 0.0f, own = here ? omega[i] : 0.0f;
    float s, c;
    sincosf(phase, &s, &c);
    const float sine = static_cast<float>(block_sum(here ? static_cast<double>(s) : 0.0) / n);
    const float cosine = static_cast<float>(block_sum(here ? static_cast<double>(c) : 0.0) / n);
    if (here) theta_next[i] = advanced(phase, dt, fmaf(K, c * sine - s * cosine, own));
}

/// Every oscillator drawn to the mean field, as with A = 1.
extern "C" __global__ void kuramoto_mean_field(const float* theta, const float* omega, float* theta_next,
                                               const float* field, long long n, float K, float dt) {
    const float sine = field[0], cosine = field[1];
    map_pairs(theta, omega, theta_next, n, [=](float phase, float own) {
        float s, c;
        sincosf(phase, &s, &c);
        return advanced(phase, dt, fmaf(K, c * sine - s * cosine, own));
    });
}
