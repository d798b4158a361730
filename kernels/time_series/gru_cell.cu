#include <cooperative_groups.h>

#include "products/gemm.cuh"
#include "sequences/recurrent_grid.cuh"
#include "sequences/resident_gates.cuh"

// The gates r, z and n are one product whose tiles hold, for every 32 units, 32 columns of each gate: a thread has all
// three gates of its units and finishes the cell in registers. W_in x is set aside before h is multiplied, since
// n = tanh(W_in x + b_in + r (W_hn h + b_hn)).

using Broad = Tile<128, 192, 8, 3, 4, 2, 1, 1>;
using FullBroad = WholeTile<128, 192, 16, 4, 2, 8>;
using Slim = Tile<16, 96, 32, 3, 1, 1, 8, 1>;
using Strip = Tile<16, 96, 16, 6, 1, 1, 8, 1>;

/// The columns of a tile: `unit` and `gate` of column c; a thread's columns j, j + 4 and j + 8 are one unit's gates.
__device__ inline int unit_of(int c) { return c / 96 * 32 + c % 32; }
__device__ inline int gate_of(int c) { return c % 96 / 32; }

/// Copies the weights of a tile's columns, turned; columns of other gates than the first `gates` are zero.
template <class T>
struct GateCopy {
    static constexpr int APART = T::THREADS / T::DEPTH, COUNT = T::N / APART, PITCH = T::N + 4;
    const float* weights;
    int width, hidden, unit, gates;

    __device__ bool whole() const { return gates == 3 && unit + T::N / 3 <= hidden; }

    template <bool WHOLE>
    __device__ void copy(float* shared, int left, int part, int parts) {
        const int k = threadIdx.x % T::DEPTH, first = threadIdx.x / T::DEPTH;
        const float* const from = weights + k;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (i * parts / COUNT != part) continue;
            const int column = first + i * APART, own = unit + unit_of(column);
            float* const to = shared + k * PITCH + column;
            if (WHOLE || (k < left && own < hidden && gate_of(column) < gates))
                __pipeline_memcpy_async(to, from + (static_cast<long long>(gate_of(column)) * hidden + own) * width, 4);
            else *to = 0.0f;
        }
        if (part == parts - 1) weights += T::DEPTH;
    }
};

/// The depth tiles of a state and its weights.
template <class T>
struct GateCopies {
    TurningCopy<T, T::M> states;
    GateCopy<T> weights;
    int depth, tiles;

    __device__ GateCopies(const float* state, const float* weight, int width, Sizes sizes, int sample, int unit,
                          int gates) {
        const long long wide = width;
        states.start(state + (sample + states.first()) * wide, states.APART * wide, sizes.batch - sample);
        weights = {weight, width, sizes.hidden, unit, gates};
        depth = width;
        tiles = depth_tiles<T>(width);
    }

    __device__ bool whole() const { return states.whole(depth) && weights.whole(); }

    template <bool WHOLE>
    __device__ void copy(float* stage, int part, int parts) {
        states.template copy<WHOLE>(stage, depth, part, parts);
        weights.template copy<WHOLE>(stage + T::DEPTH * T::PITCH_M, depth, part, parts);
        if (part < parts - 1) return;
        depth -= T::DEPTH;
        --tiles;
    }

    __device__ void next() {}
};

/// Of a whole tile's columns, those that a thread copies: APART apart, they take the three gates of 32 units in turn.
template <class T>
struct GateLines {
    const float* from;
    int gate, unit;  // floats between gates and between units

    __device__ const float* at(int i) const {
        const int column = i * LeftLines<T>::APART;
        return from + static_cast<long long>(gate) * gate_of(column) + static_cast<long long>(unit) * unit_of(column);
    }
};

struct Biases {
    const float *ih, *hh;
    int hidden;

    __device__ float both(int gate, int unit) const { return of(ih, gate, unit) + of(hh, gate, unit); }
    __device__ float of(const float* b, int gate, int unit) const { return __ldg(b + gate * hidden + unit); }
};

/// What is added to the sums of one unit's gates; `inner` is inside the reset, where that comes after the product.
struct UnitBiases {
    float r, z, n, inner;
};

template <bool RESET_AFTER>
__device__ UnitBiases biases_of(const Biases& bias, int unit) {
    const float n = RESET_AFTER ? bias.of(bias.ih, 2, unit) : bias.both(2, unit);
    return {bias.both(0, unit), bias.both(1, unit), n, RESET_AFTER ? bias.of(bias.hh, 2, unit) : 0.0f};
}

/// (1 - z) n + z h.
__device__ inline float blend(float z, float n, float h) { return fmaf(z, h - n, n); }

/// The next state of a unit, b_hn being added to the last of the h sums.
__device__ inline float next_state(const float (&by_x)[3], float r_h, float z_h, float n_h, float h) {
    const float r = logistic(by_x[0] + r_h), z = logistic(by_x[1] + z_h);
    return blend(z, tanhf(by_x[2] + r * n_h), h);
}

/// What the gates of one unit give: the next state, or for the form of 2014 what its second launch needs.
template <bool RESET_AFTER>
__device__ void finish(float r_sum, float z_sum, float n_x, float n_h, const UnitBiases& bias, float h, float* h_next,
                       float* work, long long count) {
    const float r = logistic(r_sum + bias.r), z = logistic(z_sum + bias.z);
    if constexpr (RESET_AFTER) {
        *h_next = blend(z, tanhf(n_x + bias.n + r * (n_h + bias.inner)), h);
    } else {
        work[0] = r * h, work[count] = z, work[2 * count] = n_x + bias.n;
    }
}

/// Adds the product of a state and its weights to the gates' sums. All threads call it.
template <class T>
__device__ void add_gates(const float* state, const float* weights, int width, Sizes sizes, int sample, int unit,
                          int gates, float* shared, const Place<T>& place, float (&sum)[T::ROWS][T::COLS]) {
    if constexpr (T::WHOLE) {
        TurnedOperands<T, GateLines<T>> operands;
        operands.left = operands.lines(state, sample, width);
        operands.right = {operands.line(weights, unit + operands.first(), width), sizes.hidden * width, width};
        multiply_whole<T>(operands, width / T::DEPTH, shared, place, sum);
    } else {
        GateCopies<T> source(state, weights, width, sizes, sample, unit, gates);
        multiply_tiles<T>(source, source.tiles, shared, place, sum);
    }
    __syncthreads();
}

/// One tile of a cell; `before_h` is called between the product of x and that of h. All threads call it.
template <class T, bool RESET_AFTER, class BeforeH>
__device__ void finish_tile(const BlockTile& tile, const float* x, const float* h, const float* w_ih, const float* w_hh,
                            const Biases& bias, float* h_next, float* work, Sizes sizes, float* shared,
                            BeforeH before_h) {
    const int block_sample = tile.row * T::M, block_unit = tile.col * T::N / 3;
    const Place<T> place;
    float sum[T::ROWS][T::COLS] = {}, from_x[T::ROWS][T::COLS] = {};
    add_gates<T>(x, w_ih, sizes.inputs, sizes, block_sample, block_unit, 3, shared, place, sum);
#pragma unroll
    for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
        for (int j = 8; j < 12; ++j) from_x[i][j] = sum[i][j], sum[i][j] = 0.0f;
    before_h();
    add_gates<T>(h, w_hh, sizes.hidden, sizes, block_sample, block_unit, RESET_AFTER ? 3 : 2, shared, place, sum);
    combine_slices<T>(shared, place, sum);
    combine_slices<T>(shared, place, from_x);
    if (place.slice > 0) return;
    // Every load before the first store, behind which a load waits: for the compiler they may be to the same address.
    UnitBiases added[4];
    float old[T::ROWS][4];
    const auto unit_at = [&](int j) { return block_unit + unit_of(place.col_at(j)); };
    const auto is_unit = [&](int j) { return T::WHOLE || unit_at(j) < sizes.hidden; };
    const auto inside = [&](int i, int j) {
        return T::WHOLE || (block_sample + place.row_at(i) < sizes.batch && is_unit(j));
    };
    const auto state_at = [&](int i, int j) {
        return static_cast<long long>(block_sample + place.row_at(i)) * sizes.hidden + unit_at(j);
    };
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        added[j] = is_unit(j) ? biases_of<RESET_AFTER>(bias, unit_at(j)) : UnitBiases{};
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i) old[i][j] = inside(i, j) ? h[state_at(i, j)] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const long long at = state_at(i, j);
            if (inside(i, j))
                finish<RESET_AFTER>(sum[i][j], sum[i][j + 4], from_x[i][j + 8], sum[i][j + 8], added[j], old[i][j],
                                    h_next + at, work + at, static_cast<long long>(sizes.batch) * sizes.hidden);
        }
}

template <class T>
__device__ int tile_rows(Sizes sizes) {
    return (sizes.batch + T::M - 1) / T::M;
}

template <class T>
__device__ int tile_cols(Sizes sizes) {
    return (3 * ((sizes.hidden + 31) / 32 * 32) + T::N - 1) / T::N;
}

template <class T, bool RESET_AFTER>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
gru_cell(const float* x, const float* h, const float* w_ih, const float* w_hh, const float* b_ih, const float* b_hh,
         float* h_next, float* work, int batch, int inputs, int hidden) {
    const Sizes sizes = {batch, inputs, hidden};
    const BlockTile tile(tile_rows<T>(sizes), tile_cols<T>(sizes), 16);
    if constexpr (GIVEN_MEMORY<T>) {
        extern __shared__ __align__(128) float given[];
        finish_tile<T, RESET_AFTER>(tile, x, h, w_ih, w_hh, {b_ih, b_hh, hidden}, h_next, work, sizes, given,
                                    [] {});
    } else {
        __shared__ __align__(16) float shared[T::SHARED];
        finish_tile<T, RESET_AFTER>(tile, x, h, w_ih, w_hh, {b_ih, b_hh, hidden}, h_next, work, sizes, shared,
                                    [] {});
    }
}

/// All steps in one launch, the blocks of a cooperative grid each with the same tiles throughout: y holds h of every
/// step. Before they read the last one, all blocks wait for each other.
template <class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
gru_sequence(const float* x, const float* h, const float* w_ih, const float* w_hh, const float* b_ih, const float* b_hh,
             float* y, int steps, int batch, int inputs, int hidden) {
    __shared__ __align__(16) float shared[T::SHARED];
    const Sizes sizes = {batch, inputs, hidden};
    const int rows = tile_rows<T>(sizes), cols = tile_cols<T>(sizes);
    const long long state = static_cast<long long>(batch) * hidden, signal = static_cast<long long>(batch) * inputs;
#pragma unroll 1
    for (int step = 0; step < steps; ++step, x += signal, y += state) {
#pragma unroll 1
        for (int index = blockIdx.x; index < rows * cols; index += gridDim.x) {
            const auto await_last = [&] {
                if (step > 0 && index == blockIdx.x) cooperative_groups::this_grid().sync();
            };
            finish_tile<T, true>(BlockTile(rows, cols, 16, index), x, step == 0 ? h : y - state, w_ih, w_hh,
                                 {b_ih, b_hh, hidden}, y, nullptr, sizes, shared, await_last);
            __syncthreads();
        }
    }
}

/// The steps of a launch whose blocks keep W_hh of a few units each; by_x is W_ih x + b_ih.
extern "C" __global__ void __launch_bounds__(256, 1)
gru_grid(const float* by_x, const float* h, const float* w_hh, const float* b_hh, float* y, float* states,
         unsigned long long* counters, int steps, int batch, int hidden) {
    extern __shared__ __align__(16) float resident[];
    RecurrentGrid<3, 4> grid(batch, hidden, resident);
    float inner[3][grid.OWN];
#pragma unroll
    for (int g = 0; g < 3; ++g)
#pragma unroll
        for (int i = 0; i < grid.OWN; ++i) inner[g][i] = __ldg(b_hh + g * hidden + grid.unit() + i);
    const auto cell = [&](const float (&x)[3], const float (&by_h)[3], float own, int i) {
        return next_state(x, by_h[0] + inner[0][i], by_h[1] + inner[1][i], by_h[2] + inner[2][i], own);
    };
    walk_grid(grid, GridSteps(counters, steps), by_x, h, w_hh, y, states, cell);
}

/// All steps of few units, a block per sample.
template <class Gates>
__device__ void walk_samples(const float* x, const float* h, const float* w_ih, const float* w_hh, const Biases& bias,
                             float* y, int steps, Sizes sizes, float* shared) {
    Gates gates(sizes, shared);
    const float inner = gates.unit < sizes.hidden ? bias.of(bias.hh, 2, gates.unit) : 0.0f;
    const auto added = [=](int gate, int unit) { return gate < 2 ? bias.both(gate, unit) : bias.of(bias.ih, 2, unit); };
    const auto cell = [=](const float (&by_x)[3], const float (&by_h)[3], float own) {
        return next_state(by_x, by_h[0], by_h[1], by_h[2] + inner, own);
    };
    for (int sample = blockIdx.x; sample < sizes.batch; sample += gridDim.x) {
        __syncthreads();
        walk_steps(gates, x, h, w_ih, w_hh, y, steps, sample, added, cell);
    }
}

template <int LANES, int KEPT>
__global__ void __launch_bounds__(128 * LANES, 1)
gru_resident(const float* x, const float* h, const float* w_ih, const float* w_hh, const float* b_ih, const float* b_hh,
             float* y, int steps, int batch, int inputs, int hidden) {
    extern __shared__ __align__(16) float resident[];
    walk_samples<ResidentGates<3, LANES, KEPT>>(x, h, w_ih, w_hh, {b_ih, b_hh, hidden}, y, steps, {batch, inputs, hidden},
                                                resident);
}

/// One step of few units, a block per sample. The grid has one step, which the compiler does not know: it would mix the
/// loads of W_hh with the products of x, which takes more registers than there are.
extern "C" __global__ void __launch_bounds__(512, 1)
gru_few(const float* x, const float* h, const float* w_ih, const float* w_hh, const float* b_ih, const float* b_hh,
        float* h_next, int batch, int inputs, int hidden) {
    extern __shared__ __align__(16) float resident[];
    const int steps = static_cast<int>(gridDim.y);
    walk_samples<ResidentGates<3, 4, 8, 4, 4>>(x, h, w_ih, w_hh, {b_ih, b_hh, hidden}, h_next, steps,
                                               {batch, inputs, hidden}, resident);
}

/// The second launch of the form of 2014: n = tanh(W_in x + b_in + b_hn + W_hn (r h)); `work` holds r h, z, the rest.
template <class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
gru_candidate(const float* h, const float* w_hh, const float* work, float* h_next, int batch, int hidden) {
    __shared__ __align__(16) float shared[T::SHARED];
    const BlockTile tile((batch + T::M - 1) / T::M, (hidden + T::N - 1) / T::N, 16);
    const int row = tile.row * T::M, col = tile.col * T::N;
    const long long line = hidden, count = batch * line;
    const Place<T> place;
    OperandCopies<T, 1, true> source;
    source.left.start(work + (row + source.left.first()) * line, source.left.APART * line, batch - row);
    source.right.begin(w_hh + 2 * line * hidden, hidden, hidden, col);
    source.depth = hidden;
    source.tiles = depth_tiles<T>(hidden);
    float sum[T::ROWS][T::COLS] = {};
    multiply_tiles<T>(source, source.tiles, shared, place, sum);
    combine_slices<T>(shared, place, sum);
    if (place.slice > 0) return;
#pragma unroll
    for (int i = 0; i < T::ROWS; ++i)
#pragma unroll
        for (int j = 0; j < T::COLS; ++j) {
            const int sample = row + place.row_at(i), unit = col + place.col_at(j);
            if (sample >= batch || unit >= hidden) continue;
            const long long at = sample * line + unit;
            h_next[at] = blend(work[count + at], tanhf(sum[i][j] + work[2 * count + at]), h[at]);
        }
}
