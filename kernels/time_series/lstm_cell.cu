#include <cooperative_groups.h>

#include "products/gemm_tile.cuh"
#include "sequences/recurrent_grid.cuh"
#include "sequences/resident_gates.cuh"
#include "products/whole_tile.cuh"

// The gates are one product, [x h] [W_ih W_hh]^T. A tile's columns take the four gates of each unit in turn, so that
// every thread holds all gates of its units and the cell is finished in registers.

// The tile of a sequence, whose batches are small.
using Tall = Tile<64, 32, 16, 6, 2, 1, 4, 1>;

/// Starts the copies of the depth tiles: first those of x and W_ih, then those of h and W_hh.
template <class T, bool WHOLE = T::WHOLE>
struct GateCopies {
    TurningCopy<T, T::M> states;
    TurningCopy<T, T::N> weights;
    Sizes sizes;
    const float *h, *w_hh;
    int sample, unit, depth, tiles;

    __device__ void start(const float* state, const float* weight, int width) {
        const long long wide = width, gate = weights.first() % 4, first = weights.first() / 4;
        states.start(state + (sample + states.first()) * wide, states.APART * wide, sizes.batch - sample);
        weights.start(weight + (gate * sizes.hidden + unit + first) * wide, weights.APART / 4 * wide,
                      4 * (sizes.hidden - unit));
        depth = width;
        tiles = depth_tiles<T>(width);
    }

    __device__ bool whole() const { return states.whole(depth) && weights.whole(sizes.hidden); }

    /// In two parts at most, the first turns' own: four took more time here, where sums and gates fill the registers.
    template <bool INSIDE>
    __device__ void copy(float* stage, int turn, int turns) {
        const int parts = min(turns, 2);
        if (turn < parts) {
            states.template copy<INSIDE>(stage, depth, turn, parts);
            weights.template copy<INSIDE>(stage + T::DEPTH * T::PITCH_M, depth, turn, parts);
        }
        if (turn < turns - 1) return;
        depth -= T::DEPTH;
        --tiles;
    }

    __device__ void next() {
        if (h != nullptr) start(h, w_hh, sizes.hidden);
        h = nullptr;
    }
};

template <class T>
struct GateCopies<T, true> : TurnedOperands<T> {
    Sizes sizes;
    const float *h, *w_hh;
    int sample, unit, of_x;

    __device__ int turn(const float* state, const float* weight, int width) {
        const int first = this->first();
        const long long line = static_cast<long long>(first % 4) * sizes.hidden + unit + first / 4;
        this->left = this->lines(state, sample, width);
        this->right = {this->line(weight, line, width), this->APART / 4 * width};
        return width / T::DEPTH;
    }

    __device__ void start(const float* state, const float* weight, int width) { of_x = turn(state, weight, width); }

    __device__ void multiply(float* shared, const Place<T>& place, float (&sum)[T::ROWS][T::COLS]) {
        multiply_whole<T>(*this, of_x, of_x + sizes.hidden / T::DEPTH, shared, place, sum,
                          [this] { return turn(h, w_hh, sizes.hidden); });
    }
};

/// The cell of one unit from its four gate sums and their biases, in the order i, f, g, o.
__device__ inline void finish(const float* sum, const float* bias, float c, float* h_next, float* c_next) {
    const float i = logistic(sum[0] + bias[0]), f = logistic(sum[1] + bias[1]);
    const float g = tanhf(sum[2] + bias[2]), o = logistic(sum[3] + bias[3]);
    *c_next = fmaf(f, c, i * g);
    *h_next = o * tanhf(*c_next);
}

/// One tile of a cell: its samples and units from `source`, in registers to the end. All threads of the block call it.
template <class T, class Source>
__device__ void finish_tile(Source& source, const float* c, const float* bias, float* h_next, float* c_next,
                            float* shared) {
    const Sizes sizes = source.sizes;
    const Place<T> place;
    float sum[T::ROWS][T::COLS] = {};
    if constexpr (T::WHOLE) {
        source.multiply(shared, place, sum);
    } else {
        multiply_tiles<T>(source, depth_tiles<T>(sizes.inputs) + depth_tiles<T>(sizes.hidden), shared, place, sum);
        combine_slices<T>(shared, place, sum);
        if (place.slice > 0) return;
    }
    // The loads of AHEAD rows before their first store, behind which a load waits: for the compiler both may be to the
    // same address. All rows, where the registers suffice.
    constexpr int UNITS = T::COLS / 4, AHEAD = T::RESIDENT == 1 ? T::ROWS : 4;
    float added[UNITS][4], old[AHEAD][UNITS];
    const auto unit_at = [&](int u) { return source.unit + place.col_at(4 * u) / 4; };
    const auto is_unit = [&](int u) { return T::WHOLE || unit_at(u) < sizes.hidden; };
    const auto inside = [&](int i, int u) {
        return T::WHOLE || (source.sample + place.row_at(i) < sizes.batch && is_unit(u));
    };
    const auto state_at = [&](int i, int u) {
        return static_cast<long long>(source.sample + place.row_at(i)) * sizes.hidden + unit_at(u);
    };
#pragma unroll
    for (int k = 0; k < 4 * UNITS; ++k)
        added[k / 4][k % 4] = is_unit(k / 4) ? __ldg(bias + k % 4 * sizes.hidden + unit_at(k / 4)) : 0.0f;
#pragma unroll
    for (int first = 0; first < T::ROWS; first += AHEAD) {
#pragma unroll
        for (int k = 0; k < AHEAD * UNITS; ++k) {
            const int i = first + k / UNITS, u = k % UNITS;
            old[k / UNITS][u] = inside(i, u) ? c[state_at(i, u)] : 0.0f;
        }
#pragma unroll
        for (int k = 0; k < AHEAD * UNITS; ++k) {
            const int i = first + k / UNITS, u = k % UNITS;
            const long long at = state_at(i, u);
            if (inside(i, u)) finish(sum[i] + 4 * u, added[u], old[k / UNITS][u], h_next + at, c_next + at);
        }
    }
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
lstm_cell(const float* x, const float* h, const float* c, const float* w_ih, const float* w_hh, const float* bias,
          float* h_next, float* c_next, int batch, int inputs, int hidden) {
    const BlockTile tile((batch + T::M - 1) / T::M, (4 * hidden + T::N - 1) / T::N, 16);
    GateCopies<T> source;
    source.sizes = {batch, inputs, hidden};
    source.sample = tile.row * T::M;
    source.unit = tile.col * T::N / 4;
    source.h = h, source.w_hh = w_hh;
    source.start(x, w_ih, inputs);
    if constexpr (GIVEN_MEMORY<T>) {
        extern __shared__ __align__(128) float given[];
        finish_tile<T>(source, c, bias, h_next, c_next, given);
    } else {
        __shared__ __align__(16) float shared[T::SHARED];
        finish_tile<T>(source, c, bias, h_next, c_next, shared);
    }
}

/// The copies of one step of a sequence: before those of h all blocks wait for each other's h, if it is to be new.
template <class T>
struct StepCopies : GateCopies<T> {
    bool awaits;

    __device__ void next() {
        if (this->h != nullptr && awaits) cooperative_groups::this_grid().sync();
        GateCopies<T>::next();
    }
};

/// All steps in one launch, the blocks of a cooperative grid each with the same tiles throughout: y holds h of every
/// step, from which the next one takes it; c stays with the thread that made it.
template <class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
lstm_sequence(const float* x, const float* h, const float* c, const float* w_ih, const float* w_hh, const float* bias,
              float* y, float* c_next, int steps, int batch, int inputs, int hidden) {
    __shared__ __align__(16) float shared[T::SHARED];
    const int rows = (batch + T::M - 1) / T::M, cols = (4 * hidden + T::N - 1) / T::N;
    const long long state = static_cast<long long>(batch) * hidden, signal = static_cast<long long>(batch) * inputs;
#pragma unroll 1
    for (int step = 0; step < steps; ++step, x += signal, y += state) {
#pragma unroll 1
        for (int index = blockIdx.x; index < rows * cols; index += gridDim.x) {
            const BlockTile tile(rows, cols, 16, index);
            StepCopies<T> source;
            source.sizes = {batch, inputs, hidden};
            source.sample = tile.row * T::M;
            source.unit = tile.col * T::N / 4;
            source.h = step == 0 ? h : y - state, source.w_hh = w_hh;
            source.awaits = step > 0 && index == blockIdx.x;
            source.start(x, w_ih, inputs);
            finish_tile<T>(source, step == 0 ? c : c_next, bias, y, c_next, shared);
            __syncthreads();
        }
    }
}

/// The next state of a unit, whose c is in `memory`.
__device__ inline float next_state(const float (&by_x)[4], const float (&by_h)[4], float& memory) {
    const float i = logistic(by_x[0] + by_h[0]), f = logistic(by_x[1] + by_h[1]);
    memory = fmaf(f, memory, i * tanhf(by_x[2] + by_h[2]));
    return logistic(by_x[3] + by_h[3]) * tanhf(memory);
}

/// The steps of a launch whose blocks keep W_hh of a few units each; by_x is W_ih x + bias.
extern "C" __global__ void __launch_bounds__(256, 1)
lstm_grid(const float* by_x, const float* h, const float* c, const float* w_hh, float* y, float* c_next, float* states,
          unsigned long long* counters, int steps, int batch, int hidden) {
    extern __shared__ __align__(16) float resident[];
    RecurrentGrid<4, 3> grid(batch, hidden, resident);
    const GridSteps part(counters, steps);
    float memory[grid.OWN] = {};
    if (grid.has_sample())
#pragma unroll
        for (int i = 0; i < grid.OWN; ++i) memory[i] = (part.first == 0 ? c : c_next)[grid.place() + i];
    const auto cell = [&](const float (&x)[4], const float (&by_h)[4], float, int i) {
        return next_state(x, by_h, memory[i]);
    };
    walk_grid(grid, part, by_x, h, w_hh, y, states, cell);
    if (grid.has_sample())
#pragma unroll
        for (int i = 0; i < grid.OWN; ++i) c_next[grid.place() + i] = memory[i];
}

/// All steps in one launch for few units: a block takes one sample after the other.
template <int LANES, int KEPT>
__global__ void __launch_bounds__(128 * LANES, 1)
lstm_resident(const float* x, const float* h, const float* c, const float* w_ih, const float* w_hh, const float* bias,
              float* y, float* c_next, int steps, int batch, int inputs, int hidden) {
    extern __shared__ __align__(16) float resident[];
    using Gates = ResidentGates<4, LANES, KEPT>;
    Gates gates({batch, inputs, hidden}, resident);
    const auto added = [=](int gate, int unit) { return __ldg(bias + gate * hidden + unit); };
    for (int sample = blockIdx.x; sample < batch; sample += gridDim.x) {
        __syncthreads();
        const long long at = static_cast<long long>(sample) * hidden + gates.unit;
        float memory = gates.unit < hidden ? c[at] : 0.0f;
        const auto cell = [&](const float (&by_x)[4], const float (&by_h)[4], float) {
            return next_state(by_x, by_h, memory);
        };
        walk_steps(gates, x, h, w_ih, w_hh, y, steps, sample, added, cell);
        if (gates.lane == 0 && gates.unit < hidden) c_next[at] = memory;
    }
}
