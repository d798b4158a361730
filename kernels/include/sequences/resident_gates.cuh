#pragma once

#include "arrays/vector_load.cuh"

// Sequences of a recurrent cell with few units, a block per sample. LANES threads per unit keep the weights of its gates
// between the steps: KEPT groups of four in registers, the rest in shared memory. So no step reads weights from memory,
// no block waits for another, and a step has one barrier.

struct Sizes {
    int batch, inputs, hidden;
};

__device__ inline float logistic(float a) { return 1.0f / (1.0f + expf(-a)); }

/// STEPS are those whose inputs a thread multiplies at once, CHUNK those between two loads of the weights.
template <int GATES_, int LANES_, int KEPT_, int STEPS_ = GATES_ == 3 ? 16 : 8, int CHUNK_ = 64>
struct ResidentGates {
    static constexpr int GATES = GATES_, LANES = LANES_, KEPT = KEPT_, UNITS = 128, THREADS = UNITS * LANES;
    static constexpr int GROUPS = UNITS / 4 / LANES, SHARED_GROUPS = GROUPS - KEPT;  // of a thread and gate
    static constexpr int STEPS = STEPS_, CHUNK = CHUNK_;
    static_assert(32 % LANES == 0 && KEPT <= GROUPS && STEPS % LANES == 0 && CHUNK % STEPS == 0);

    const Sizes sizes;
    const int unit, lane;
    float4 kept[GATES][KEPT];
    float4* const weights;   // [gate, group, thread]
    float* const from_x;     // [step of the chunk, gate, unit]
    float* const signals;    // [step, padded input]
    float* const states;     // two of UNITS

    __device__ ResidentGates(const Sizes& sizes, float* shared)
        : sizes(sizes), unit(threadIdx.x / LANES), lane(threadIdx.x % LANES),
          weights(reinterpret_cast<float4*>(shared)), from_x(shared + 4 * GATES * SHARED_GROUPS * THREADS),
          signals(from_x + CHUNK * GATES * UNITS), states(signals + STEPS * padded(sizes.inputs)) {}

    __host__ __device__ static int padded(int inputs) { return (inputs + 3) / 4 * 4; }

    /// Four weights of a row from `at` on; zero behind its `width`, and for units that the cell does not have.
    __device__ float4 group_of(const float* rows, int gate, int width, int at) const {
        const float* const from = rows + (static_cast<long long>(gate) * sizes.hidden + unit) * width + at;
        if (unit >= sizes.hidden || at >= width) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (width % 4 == 0 && misalignment(rows) == 0) return load4(from);
        const auto one = [&](int i) { return at + i < width ? __ldg(from + i) : 0.0f; };
        return make_float4(one(0), one(1), one(2), one(3));
    }

    __device__ static float dot(const float4& a, const float4& b, float sum) {
        return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
    }

    __device__ void keep(const float* w_hh) {
#pragma unroll
        for (int g = 0; g < GATES; ++g)
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
                const float4 group = group_of(w_hh, g, sizes.hidden, 4 * (i * LANES + lane));
                if (i < KEPT) kept[g][i] = group;
                else weights[(g * SHARED_GROUPS + i - KEPT) * THREADS + threadIdx.x] = group;
            }
    }

    /// The products of W_ih and `count` inputs of a sample, at most STEPS, `apart` floats from one to the next; bias(gate,
    /// unit) is added. All threads call it.
    template <class Bias>
    __device__ void take_inputs(const float* x, long long apart, int count, const float* w_ih, float* to, Bias bias) {
        const int width = padded(sizes.inputs);
        for (int i = threadIdx.x; i < STEPS * width; i += THREADS) {
            const int step = i / width, at = i % width;
            signals[i] = step < count && at < sizes.inputs ? __ldg(x + step * apart + at) : 0.0f;
        }
        __syncthreads();
        float sum[GATES][STEPS] = {};
#pragma unroll 1
        for (int at = 4 * lane; at < width; at += 4 * LANES) {
            float4 group[GATES];
#pragma unroll
            for (int g = 0; g < GATES; ++g) group[g] = group_of(w_ih, g, sizes.inputs, at);
#pragma unroll
            for (int s = 0; s < STEPS; ++s) {
                const float4 signal = load4(signals + s * width + at);
#pragma unroll
                for (int g = 0; g < GATES; ++g) sum[g][s] = dot(group[g], signal, sum[g][s]);
            }
        }
#pragma unroll
        for (int g = 0; g < GATES; ++g) {
            const float added = unit < sizes.hidden ? bias(g, unit) : 0.0f;
            scatter<STEPS, LANES / 2>(sum[g], 0, [&](int step, float total) {
                to[(step * GATES + g) * UNITS + unit] = total + added;
            });
        }
        __syncthreads();
    }

    /// Adds COUNT sums over a unit's lanes, of which each ends with its share: half the sums with every exchange.
    template <int COUNT, int MASK, class Store>
    __device__ void scatter(const float (&sum)[COUNT], int first, Store store) const {
        if constexpr (MASK == 0) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) store(first + i, sum[i]);
        } else {
            const bool upper = lane & MASK;
            float half[COUNT / 2];
#pragma unroll
            for (int i = 0; i < COUNT / 2; ++i) {
                const float given = upper ? sum[i] : sum[i + COUNT / 2], own = upper ? sum[i + COUNT / 2] : sum[i];
                half[i] = own + __shfl_xor_sync(0xffffffffu, given, MASK);
            }
            scatter<COUNT / 2, MASK / 2>(half, first + (upper ? COUNT / 2 : 0), store);
        }
    }

    /// sum = W_hh h for the unit's gates, in all its lanes.
    __device__ void multiply(const float* state, float (&sum)[GATES]) const {
#pragma unroll
        for (int g = 0; g < GATES; ++g) sum[g] = 0.0f;
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
            const float4 h = load4(state + 4 * (i * LANES + lane));
#pragma unroll
            for (int g = 0; g < GATES; ++g) {
                if (i < KEPT) sum[g] = dot(kept[g][i], h, sum[g]);
                else sum[g] = dot(weights[(g * SHARED_GROUPS + i - KEPT) * THREADS + threadIdx.x], h, sum[g]);
            }
        }
#pragma unroll
        for (int mask = LANES / 2; mask > 0; mask /= 2)
#pragma unroll
            for (int g = 0; g < GATES; ++g) sum[g] += __shfl_xor_sync(0xffffffffu, sum[g], mask);
    }
};

/// All steps of the samples of a block. `cell(x sums, h sums, h)` gives the next state of the thread's unit.
template <class R, class Bias, class Cell>
__device__ void walk_steps(R& gates, const float* x, const float* h, const float* w_ih, const float* w_hh, float* y,
                           int steps, int sample, Bias bias, Cell cell) {
    const Sizes& sizes = gates.sizes;
    const long long signal = static_cast<long long>(sizes.batch) * sizes.inputs;
    const long long state = static_cast<long long>(sizes.batch) * sizes.hidden;
    const bool mine = gates.unit < sizes.hidden;
    const long long at = static_cast<long long>(sample) * sizes.hidden + gates.unit;
    float own = mine ? h[at] : 0.0f;
    if (gates.lane == 0) gates.states[gates.unit] = own;
    const float* from = x + static_cast<long long>(sample) * sizes.inputs;
    float* to = y + at;
    int current = 0;
#pragma unroll 1
    for (int first = 0; first < steps; first += R::CHUNK) {
        const int count = min(R::CHUNK, steps - first);
        for (int s = 0; s < count; s += R::STEPS, from += R::STEPS * signal)
            gates.take_inputs(from, signal, min(R::STEPS, count - s), w_ih, gates.from_x + s * R::GATES * R::UNITS, bias);
        gates.keep(w_hh);
        __syncthreads();
#pragma unroll 1
        for (int s = 0; s < count; ++s, to += state) {
            float by_x[R::GATES], by_h[R::GATES];
#pragma unroll
            for (int g = 0; g < R::GATES; ++g) by_x[g] = gates.from_x[(s * R::GATES + g) * R::UNITS + gates.unit];
            gates.multiply(gates.states + current * R::UNITS, by_h);
            own = cell(by_x, by_h, own);
            current ^= 1;
            if (gates.lane == 0) {
                gates.states[current * R::UNITS + gates.unit] = mine ? own : 0.0f;
                if (mine) *to = own;
            }
            __syncthreads();
        }
    }
}
