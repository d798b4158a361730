#include "products/row_dots.cuh"
#include "products/whole_tile.cuh"

/// x' = (1 - leak) x + leak tanh(sum), for sum = W_in u + W x + b.
__device__ inline float leaky(float x, float sum, float leak) { return fmaf(leak, tanhf(sum), (1.0f - leak) * x); }

// One sequence: ROWS neurons a block, whose rows of W and W_in are streamed once.
template <int ROWS, int WIDTH, int INPUT_WIDTH>
__global__ void __launch_bounds__(512)
    reservoir_update(const float* x, const float* u, const float* w, const float* w_in, const float* bias,
                     float* x_next, int neurons, int inputs, float leak) {
    const long long first = static_cast<long long>(blockIdx.x) * ROWS, rows = neurons - first;
    float sum[ROWS][1] = {};
    const int thread = threadIdx.x, threads = blockDim.x;
    add_row_dots<WIDTH>(w + first * neurons, static_cast<long long>(neurons), rows, thread, threads, neurons, {x}, sum);
    add_row_dots<INPUT_WIDTH>(w_in + first * inputs, static_cast<long long>(inputs), rows, thread, threads, inputs, {u},
                              sum);
    block_totals(sum);
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        if (thread == r && r < rows)
            x_next[first + r] = leaky(x[first + r], sum[r][0] + bias[first + r], leak);
}

// The older form, element by element, with the leak inside and no recurrent product.
extern "C" __global__ void reservoir_compat(const float* x, const float* u, float* x_next, long long neurons,
                                            float leak) {
    map_pairs(x, u, x_next, neurons, [=](float a, float b) { return tanhf(fmaf(1.0f - leak, a, b)); });
}

/// Starts the copies of the depth tiles: first those of x and W, then those of u and W_in.
template <class T, bool WHOLE = T::WHOLE>
struct ReservoirCopies {
    TurningCopy<T, T::M> states;
    TurningCopy<T, T::N> weights;
    const float *u, *w_in;
    int sample, unit, samples, neurons, inputs, depth, tiles;

    __device__ void start(const float* state, const float* weight, int width) {
        const long long wide = width;
        states.start(state + (sample + states.first()) * wide, states.APART * wide, samples - sample);
        weights.start(weight + (unit + weights.first()) * wide, weights.APART * wide, neurons - unit);
        depth = width;
        tiles = depth_tiles<T>(width);
    }

    __device__ bool whole() const { return states.whole(depth) && weights.whole(inputs); }

    template <bool INSIDE>
    __device__ void copy(float* stage, int part, int parts) {
        states.template copy<INSIDE>(stage, depth, part, parts);
        weights.template copy<INSIDE>(stage + T::DEPTH * T::PITCH_M, depth, part, parts);
        if (part < parts - 1) return;
        depth -= T::DEPTH;
        --tiles;
    }

    __device__ void next() {
        if (u != nullptr) start(u, w_in, inputs);
        u = nullptr;
    }

    __device__ void multiply(float* shared, const Place<T>& place, float (&sum)[T::ROWS][T::COLS]) {
        multiply_tiles<T>(*this, depth_tiles<T>(neurons) + depth_tiles<T>(inputs), shared, place, sum);
        combine_slices<T>(shared, place, sum);
    }
};

template <class T>
struct ReservoirCopies<T, true> : TurnedOperands<T> {
    const float *u, *w_in;
    int sample, unit, samples, neurons, inputs, of_x;

    __device__ int turn(const float* state, const float* weight, int width) {
        this->left = this->lines(state, sample, width);
        this->right = this->lines(weight, unit, width);
        return width / T::DEPTH;
    }

    __device__ void start(const float* state, const float* weight, int width) { of_x = turn(state, weight, width); }

    __device__ void multiply(float* shared, const Place<T>& place, float (&sum)[T::ROWS][T::COLS]) {
        multiply_whole<T>(*this, of_x, of_x + inputs / T::DEPTH, shared, place, sum,
                          [this] { return turn(u, w_in, inputs); });
    }
};

/// The next states of a thread's sums.
template <class T>
__device__ void finish_inside(const ReservoirCopies<T>& source, const float* x, const float* bias, float* x_next,
                              float leak, const Place<T>& place, const float (&sum)[T::ROWS][T::COLS]) {
#pragma unroll
    for (int i = 0; i < T::ROWS; ++i) {
        const int sample = source.sample + place.row_at(i);
#pragma unroll
        for (int j = 0; j < T::COLS; ++j) {
            const int unit = source.unit + place.col_at(j);
            const long long at = static_cast<long long>(sample) * source.neurons + unit;
            if (sample < source.samples && unit < source.neurons)
                x_next[at] = leaky(x[at], sum[i][j] + bias[unit], leak);
        }
    }
}

/// The same where all are inside: the loads of AHEAD rows before their first store, behind which a load waits.
template <class T>
__device__ void finish_whole(const ReservoirCopies<T>& source, const float* x, const float* bias, float* x_next,
                             float leak, const Place<T>& place, const float (&sum)[T::ROWS][T::COLS]) {
    constexpr int AHEAD = 4, QUADS = T::COLS / 4;
    const auto at = [&](int i, int q) {
        return static_cast<long long>(source.sample + place.row_at(i)) * source.neurons + source.unit +
               place.col_at(4 * q);
    };
    float added[T::COLS];
#pragma unroll
    for (int j = 0; j < T::COLS; ++j) added[j] = __ldg(bias + source.unit + place.col_at(j));
#pragma unroll
    for (int first = 0; first < T::ROWS; first += AHEAD) {
        float4 old[AHEAD][QUADS];
#pragma unroll
        for (int k = 0; k < AHEAD * QUADS; ++k)
            old[k / QUADS][k % QUADS] = load4(x + at(first + k / QUADS, k % QUADS));
#pragma unroll
        for (int k = 0; k < AHEAD * QUADS; ++k) {
            const float4 o = old[k / QUADS][k % QUADS];
            const float *const s = sum[first + k / QUADS] + k % QUADS * 4, *const b = added + k % QUADS * 4;
            store4(x_next + at(first + k / QUADS, k % QUADS),
                   make_float4(leaky(o.x, s[0] + b[0], leak), leaky(o.y, s[1] + b[1], leak),
                               leaky(o.z, s[2] + b[2], leak), leaky(o.w, s[3] + b[3], leak)));
        }
    }
}

// Many sequences that share W: one tiled product [x u] [W W_in]^T, finished in registers.
template <class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
    reservoir_batched(const float* x, const float* u, const float* w, const float* w_in, const float* bias,
                      float* x_next, int samples, int neurons, int inputs, float leak) {
    const BlockTile tile((samples + T::M - 1) / T::M, (neurons + T::N - 1) / T::N, 16);
    const Place<T> place;
    ReservoirCopies<T> source;
    source.u = u, source.w_in = w_in;
    source.sample = tile.row * T::M, source.unit = tile.col * T::N;
    source.samples = samples, source.neurons = neurons, source.inputs = inputs;
    source.start(x, w, neurons);
    float sum[T::ROWS][T::COLS] = {};
    if constexpr (GIVEN_MEMORY<T>) {
        extern __shared__ __align__(128) float given[];
        source.multiply(given, place, sum);
    } else {
        __shared__ __align__(16) float shared[T::SHARED];
        source.multiply(shared, place, sum);
    }
    if (place.slice > 0) return;
    if constexpr (T::WHOLE) finish_whole<T>(source, x, bias, x_next, leak, place, sum);
    else finish_inside<T>(source, x, bias, x_next, leak, place, sum);
}
