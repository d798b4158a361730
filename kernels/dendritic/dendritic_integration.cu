#include "sums/reduce.cuh"
#include "arrays/vector_load.cuh"

// y[n] = mean over branches d of g(s[n, d]). A warp per neuron; AHEAD branches are loaded before the first is summed,
// and lane d keeps the sum of branch d, so that g is evaluated once for 32 branches.

constexpr int LANES = 32;

enum Kind { SIGMOID, NMDA, BACKPROPAGATING, SATURATING, SIGMA_PI, NMDA_COMPAT };

struct Constants {
    float coupling, slope, threshold, gain, decay, magnesium, reversal;
};

/// What one or two neighbouring synapses add to their branch: a sum, or the product of a cluster of two.
template <Kind KIND>
__device__ float pair(float x0, float w0, float x1, float w1) {
    return KIND == SIGMA_PI ? x0 * w0 * (x1 * w1) : fmaf(x0, w0, x1 * w1);
}

template <Kind KIND>
__device__ float four(float4 x, float4 w) {
    return pair<KIND>(x.x, w.x, x.y, w.y) + pair<KIND>(x.z, w.z, x.w, w.w);
}

/// This lane's part of the sums of the first AHEAD of `branches` branches; 16-byte loads where lengths allow them.
/// Inputs that all neurons share stay in the caches.
template <Kind KIND, bool SHARED, int AHEAD>
__device__ void add_synapses(const float* x, const float* w, int branches, int inputs, float (&sum)[AHEAD]) {
    const int lane = threadIdx.x % LANES;
    if (inputs % 4 == 0) {
        for (int i = 4 * lane; i < inputs; i += 4 * LANES) {
            float4 xs[AHEAD], ws[AHEAD];
            const auto place = [&](int b) { return static_cast<long long>(b < branches ? b : 0) * inputs + i; };
#pragma unroll
            for (int b = 0; b < AHEAD; ++b) {
                ws[b] = load4_streamed(w + place(b));
                if (!SHARED) xs[b] = load4_streamed(x + place(b));
            }
#pragma unroll
            for (int b = 0; b < AHEAD; ++b) sum[b] += four<KIND>(SHARED ? load4(x + place(b)) : xs[b], ws[b]);
        }
        return;
    }
    for (int b = 0; b < min(branches, AHEAD); ++b, x += inputs, w += inputs) {
        float total = 0.0f;
        for (int i = 2 * lane; i < inputs; i += 2 * LANES)
            total += i + 1 < inputs ? pair<KIND>(x[i], w[i], x[i + 1], w[i + 1]) : x[i] * w[i];
#pragma unroll
        for (int a = 0; a < AHEAD; ++a)
            if (a == b) sum[a] = total;
    }
}

__device__ float logistic(float a) { return 1.0f / (1.0f + expf(-a)); }

/// What a branch sends to the soma, from the sum of its synapses and the soma's potential.
template <Kind KIND>
__device__ float branch_output(float synapses, float v, const Constants& k) {
    const float drive = fmaf(k.coupling, v, synapses);
    if constexpr (KIND == SIGMOID) return logistic(k.slope * (drive - k.threshold));
    // Jahr and Stevens 1990: the synapses open a conductance, magnesium blocks it by the potential (mV, mM).
    if constexpr (KIND == NMDA)
        return k.gain * synapses / (1.0f + k.magnesium / 3.57f * expf(-0.062f * v)) * (k.reversal - v);
    if constexpr (KIND == NMDA_COMPAT) return k.gain * (k.reversal - drive) / (1.0f + k.magnesium * expf(-0.062f * drive));
    if constexpr (KIND == BACKPROPAGATING)
        return drive > k.threshold ? k.gain * (drive - k.threshold) * expf(-k.decay * fabsf(drive)) : 0.1f * drive;
    return k.gain * tanhf(drive);
}

template <int KIND, bool SHARED>
__global__ void __launch_bounds__(256, 3)
dendritic_integration(const float* x, const float* w, const float* v, float* y, int neurons, int dendrites, int inputs,
                      float coupling, float slope, float threshold, float gain, float decay, float magnesium,
                      float reversal) {
    constexpr Kind kind = static_cast<Kind>(KIND);
    constexpr int AHEAD = SHARED ? 8 : 4;  // weights alone come from memory then
    const Constants constants{coupling, slope, threshold, gain, decay, magnesium, reversal};
    const int lane = threadIdx.x % LANES;
    const long long neuron = grid_thread() / LANES;
    if (neuron >= neurons) return;
    const float potential = v[neuron];
    if (!SHARED) x += neuron * dendrites * inputs;
    w += neuron * dendrites * inputs;
    float soma = 0.0f;
    for (int first = 0; first < dendrites; first += LANES) {
        const int last = min(first + LANES, dendrites);
        float mine = 0.0f;
        for (int d = first; d < last; d += AHEAD) {
            const long long from = static_cast<long long>(d) * inputs;
            float sum[AHEAD] = {};
            add_synapses<kind, SHARED, AHEAD>(x + from, w + from, last - d, inputs, sum);
#pragma unroll
            for (int b = 0; b < AHEAD; ++b) {
                const float branch = warp_reduce(sum[b], Sum{});
                if (first + lane == d + b) mine = branch;
            }
        }
        if (first + lane < last) soma += branch_output<kind>(mine, potential, constants);
    }
    soma = warp_reduce(soma, Sum{});
    if (lane == 0) y[neuron] = soma / dendrites;
}
