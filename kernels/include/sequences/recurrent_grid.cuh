#pragma once

#include "products/gemm.cuh"
#include "tensor_cores/ptx.cuh"

// Sequences of a recurrent cell with up to 64 samples. One launch multiplies x of many steps by W_ih; the next one is a
// cooperative grid whose blocks keep W_hh of 8 units in shared memory for all these steps and exchange h through the L2
// cache. Its 8 warps each have a part of the depth: a warp goes on as soon as the blocks of its part have their h.

/// What both launches know of the sequence. `counters` is zero before the first of them; the last word counts the launches
/// that are done.
struct GridSteps {
    static constexpr int MOST = 128, WARPS = 8, APART = 16;  // counters do not share a line
    unsigned long long* counters;
    int first, count;
    unsigned long long counted;  // by each block, in the launches before

    __device__ GridSteps(unsigned long long* counters, int steps) : counters(counters) {
        const unsigned long long launches = counters[WARPS * APART];
        first = static_cast<int>(launches) * MOST;
        count = min(MOST, steps - first);
        counted = launches * (MOST + 1);
    }
    __device__ unsigned long long* counter(int warp) const { return counters + warp * APART; }
    __device__ void end_launch() const { ++counters[WARPS * APART]; }
};

/// by_x[step of the launch, sample, gate, unit] = W_ih x + bias.
template <class T, int GATES>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
recurrent_inputs(const float* x, const float* w_ih, const float* bias, float* by_x, unsigned long long* counters, int steps,
                 int batch, int inputs, int hidden) {
    const GridSteps part(counters, steps);
    multiply_matrices<T, 4, true>(x + static_cast<long long>(part.first) * batch * inputs, w_ih, bias, by_x,
                                  part.count * batch, GATES * hidden, inputs, Identity{});
}

/// A block's 8 units. A warp multiplies STAGES chunks of h in flight; its lanes share the columns (a unit's gates side by
/// side) and the depth in halves, and each has 8 samples. `hidden` is a multiple of 16.
template <int GATES_, int STAGES>
struct RecurrentGrid {
    static constexpr int GATES = GATES_, UNITS = 8, SAMPLES = 64, THREADS = 32 * GridSteps::WARPS, OWN = 2, DEPTH = 16;
    static constexpr int COLUMNS = UNITS * GATES, COLS = COLUMNS / 2, CHUNK = DEPTH * SAMPLES;
    static_assert(COLUMNS * SAMPLES <= STAGES * CHUNK && UNITS * SAMPLES == OWN * THREADS);

    const int batch, hidden, warp, lane;
    const int depth;        // of a warp
    const int sample, own;  // the thread's sample, and the first of its OWN units in the block's
    float* const weights;   // [depth, unit, gate]
    float* const ring;      // [warp, stage, depth, sample]; then the warps' sums [warp, unit, gate, sample]

    __device__ RecurrentGrid(int batch, int hidden, float* shared)
        : batch(batch), hidden(hidden), warp(threadIdx.x / 32), lane(threadIdx.x % 32),
          depth((hidden + 127) / 128 * DEPTH), sample(threadIdx.x / (UNITS / OWN)), own(threadIdx.x % (UNITS / OWN) * OWN),
          weights(shared), ring(shared + hidden * COLUMNS) {}

    __device__ bool has_sample() const { return sample < batch; }
    __device__ int unit() const { return blockIdx.x * UNITS + own; }
    /// Where the first of the thread's units is in a state [sample, unit].
    __device__ long long place() const { return static_cast<long long>(sample) * hidden + unit(); }

    __device__ void keep(const float* w_hh) {
#pragma unroll 1
        for (int c = 0; c < COLUMNS; ++c) {
            const long long row = static_cast<long long>(c % GATES) * hidden + blockIdx.x * UNITS + c / GATES;
            for (int k = threadIdx.x; k < hidden; k += THREADS) weights[k * COLUMNS + c] = __ldg(w_hh + row * hidden + k);
        }
    }

    /// Starts to copy a chunk of the warp's part of a state [unit, sample].
    __device__ void copy(const float* state, int chunk, int stage) const {
        const float* const from = state + chunk * CHUNK + 4 * lane;
        float* const to = ring + (warp * STAGES + stage) * CHUNK + 4 * lane;
#pragma unroll
        for (int i = 0; i < CHUNK; i += 128) __pipeline_memcpy_async(to + i, from + i, 16);
    }

    /// The sums of the warp's part of the depth. Lanes of the first half of a warp end with samples 0 to 31, the others
    /// with samples 32 to 63: four each.
    __device__ void multiply(const float* states, float (&sum)[4][COLS]) const {
        const int before = warp * depth, chunks = min(depth, max(hidden - before, 0)) / DEPTH;
        const float* const state = states + before * SAMPLES;
        float all[8][COLS] = {};
#pragma unroll
        for (int stage = 0; stage < STAGES; ++stage) {
            if (stage < chunks) copy(state, stage, stage);
            __pipeline_commit();
        }
        const float* right = weights + (before + lane / 16) * COLUMNS + lane / 8 % 2 * COLS;
        int stage = 0;
#pragma unroll 1
        for (int chunk = 0; chunk < chunks; ++chunk, right += DEPTH * COLUMNS) {
            __pipeline_wait_prior(STAGES - 1);
            __syncwarp();
            add_chunk(ring + (warp * STAGES + stage) * CHUNK + lane / 16 * SAMPLES + lane % 8 * 4, right, all);
            __syncwarp();
            if (chunk + STAGES < chunks) copy(state, chunk + STAGES, stage);
            __pipeline_commit();
            stage = stage + 1 == STAGES ? 0 : stage + 1;
        }
        const bool later = lane >= 16;
#pragma unroll
        for (int j = 0; j < COLS; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float given = later ? all[i][j] : all[i + 4][j], kept = later ? all[i + 4][j] : all[i][j];
                sum[i][j] = kept + __shfl_xor_sync(0xffffffffu, given, 16);
            }
    }

    /// Every second line of a chunk; fragments are read one line ahead.
    __device__ static void add_chunk(const float* left, const float* right, float (&sum)[8][COLS]) {
        float a[2][8], b[2][COLS];
        const auto read = [&](int to, int line) {
            const auto put = [](float* at, float4 v) { at[0] = v.x, at[1] = v.y, at[2] = v.z, at[3] = v.w; };
            put(a[to], load4(left + line * SAMPLES)), put(a[to] + 4, load4(left + line * SAMPLES + 32));
#pragma unroll
            for (int j = 0; j < COLS; j += 4) put(b[to] + j, load4(right + line * COLUMNS + j));
        };
        read(0, 0);
#pragma unroll
        for (int line = 0; line < DEPTH; line += 2) {
            const int now = line / 2 % 2;
            if (line + 2 < DEPTH) read(1 - now, line + 2);
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int n = 0; n < COLS; ++n) {
                    const int j = i % 2 ? COLS - 1 - n : n;
                    sum[i][j] = fmaf(a[now][i], b[now][j], sum[i][j]);
                }
        }
    }

    /// A warp's sum of a unit's gate for a sample; pairs of units are turned by 8 samples, so that reading them meets no
    /// bank twice.
    __device__ float* sum_at(int warp, int unit, int gate, int sample) const {
        return ring + ((warp * UNITS + unit) * GATES + gate) * SAMPLES + (sample + unit / 2 * 8) % SAMPLES;
    }

    __device__ void show(const float (&sum)[4][COLS]) const {
#pragma unroll
        for (int j = 0; j < COLS; ++j)
            store4(sum_at(warp, lane / 8 % 2 * (UNITS / 2) + j / GATES, j % GATES, lane % 8 * 4 + lane / 16 * 32),
                   make_float4(sum[0][j], sum[1][j], sum[2][j], sum[3][j]));
    }

    /// The sums of all warps for one of the thread's units, in order.
    __device__ void total(int i, float (&sum)[GATES]) const {
#pragma unroll
        for (int g = 0; g < GATES; ++g) {
            sum[g] = *sum_at(0, own + i, g, sample);
#pragma unroll
            for (int w = 1; w < GridSteps::WARPS; ++w) sum[g] += *sum_at(w, own + i, g, sample);
        }
    }
};

/// All steps of a launch. `cell(x sums, h sums, h, i)` gives the next state of the i-th of the thread's units; `states` has
/// room for two states [unit, sample]. All threads of a cooperative grid of hidden / 8 blocks call it.
template <class R, class Cell>
__device__ void walk_grid(R& grid, const GridSteps& steps, const float* by_x, const float* h, const float* w_hh, float* y,
                          float* states, Cell cell) {
    const long long line = grid.hidden, state = grid.batch * line, at = grid.place(), size = line * R::SAMPLES;
    const int before = grid.warp * grid.depth, mine = blockIdx.x * R::UNITS / grid.depth;
    const unsigned long long blocks = min(grid.depth, max(grid.hidden - before, 0)) / R::UNITS;
    float own[R::OWN] = {};
    grid.keep(w_hh);
    y += steps.first * state;
    const auto send = [&](int step) {
        if (grid.has_sample())
#pragma unroll
            for (int i = 0; i < R::OWN; ++i)
                states[step % 2 * size + (grid.unit() + i) * R::SAMPLES + grid.sample] = own[i];
        __syncthreads();
        if (threadIdx.x == 0) count_in_order(steps.counter(mine));
    };
    if (grid.has_sample())
        for (int i = 0; i < R::OWN; ++i) own[i] = (steps.first == 0 ? h : y - state)[at + i];
    send(0);
#pragma unroll 1
    for (int step = 0; step < steps.count; ++step, by_x += R::GATES * state, y += state) {
        float2 inputs[R::GATES] = {};
        if (grid.has_sample())
#pragma unroll
            for (int g = 0; g < R::GATES; ++g)
                inputs[g] = __ldcs(reinterpret_cast<const float2*>(by_x + (grid.sample * R::GATES + g) * line + grid.unit()));
        if (blocks > 0) await_count(steps.counter(grid.warp), (steps.counted + step + 1) * blocks);
        __syncwarp();
        float sum[4][R::COLS];
        grid.multiply(states + step % 2 * size, sum);
        __syncthreads();  // all have read the ring, which the sums take over
        grid.show(sum);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < R::OWN; ++i) {
            float from_x[R::GATES], from_h[R::GATES];
#pragma unroll
            for (int g = 0; g < R::GATES; ++g) from_x[g] = i == 0 ? inputs[g].x : inputs[g].y;
            grid.total(i, from_h);
            own[i] = cell(from_x, from_h, own[i], i);
        }
        send(step + 1);
        if (grid.has_sample())
#pragma unroll
            for (int i = 0; i < R::OWN; ++i) y[at + i] = own[i];
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) steps.end_launch();
}
