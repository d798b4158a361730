#pragma once

#include "products/gemm_tile.cuh"

// Products of which no tile reaches outside the matrices: the copies look for no borders, and every step of a depth tile
// starts two of them, so that none waits in a queue behind the others.

/// Of a line along the depth, RUN threads side by side copy a float each, again and again to its end.
template <int M, int N, int DEPTH, int WARPS_M, int WARPS_N, int RUN_, bool PAIRED_ = true>
struct WholeTile : Tile<M, N, DEPTH, 3, WARPS_M, WARPS_N, 1, 1> {
    static constexpr bool WHOLE = true, PAIRED = PAIRED_;
    static constexpr int RUN = RUN_;
};

using Full = WholeTile<128, 256, 16, 2, 4, 16>;
using FullRows = WholeTile<128, 256, 16, 2, 4, 8, false>;

/// Lines that run along the depth, `step` floats apart.
struct EvenLines {
    const float* from;
    int step;

    __device__ const float* at(int i) const { return from + static_cast<long long>(step) * i; }
};

/// Copies T::M lines of the left operand, turning them: this thread's first line is first(), the next ones are APART
/// lines apart.
template <class T>
struct LeftLines {
    static constexpr int APART = T::THREADS / T::RUN, RUNS = T::DEPTH / T::RUN, LEFT = T::M / APART * RUNS;
    EvenLines left;

    __device__ static int first() { return threadIdx.x / T::RUN; }

    /// This thread's floats of the line `index` of lines of `width` floats.
    __device__ static const float* line(const float* matrix, long long index, int width) {
        return matrix + index * width + threadIdx.x % T::RUN;
    }

    /// Its lines from the line `index` of the matrix on.
    __device__ static EvenLines lines(const float* matrix, int index, int width) {
        return {line(matrix, index + first(), width), APART * width};
    }

    /// Copy i of some lines, of which shared memory has `pitch` floats at each depth.
    template <class Lines>
    __device__ static void copy_turned(float* shared, int pitch, const Lines& lines, int i) {
        const int line = i / RUNS, run = i % RUNS * T::RUN;
        float* const to = shared + threadIdx.x % T::RUN * pitch + first();
        __pipeline_memcpy_async(to + run * pitch + line * APART, lines.at(line) + run, 4);
    }
};

/// The operands of a product whose right one is turned, too; `Lines` gives this thread's i-th line of it.
template <class T, class Lines = EvenLines>
struct TurnedOperands : LeftLines<T> {
    using Left = LeftLines<T>;
    static constexpr int COUNT = Left::LEFT + T::N / Left::APART * Left::RUNS;
    Lines right;

    __device__ void copy(float* stage, int i) const {
        if (i < Left::LEFT) this->copy_turned(stage, T::PITCH_M, this->left, i);
        else this->copy_turned(stage + T::DEPTH * T::PITCH_M, T::PITCH_N, right, i - Left::LEFT);
    }

    __device__ void advance() { this->left.from += T::DEPTH, right.from += T::DEPTH; }
};

/// The operands of a product whose right one is row-major, [depth, column].
template <class T>
struct StraightOperands : LeftLines<T> {
    using Left = LeftLines<T>;
    static constexpr int ACROSS = T::N / 4, ROWS_APART = T::THREADS / ACROSS;
    static constexpr int COUNT = Left::LEFT + T::DEPTH / ROWS_APART;
    const float* right;  // this thread's first four floats
    int length;

    __device__ void start_right(const float* matrix, int columns, int column) {
        length = columns;
        right = matrix + threadIdx.x / ACROSS * static_cast<long long>(length) + column + threadIdx.x % ACROSS * 4;
    }

    __device__ void copy(float* stage, int i) const {
        if (i < Left::LEFT) return this->copy_turned(stage, T::PITCH_M, this->left, i);
        const int row = (i - Left::LEFT) * ROWS_APART;
        float* const to = stage + T::DEPTH * T::PITCH_M + threadIdx.x / ACROSS * T::PITCH_N;
        __pipeline_memcpy_async(to + row * T::PITCH_N + threadIdx.x % ACROSS * 4,
                                right + static_cast<long long>(length) * row, 16);
    }

    __device__ void advance() { this->left.from += T::DEPTH, right += T::DEPTH * static_cast<long long>(length); }
};

/// Adds the product of `tiles` depth tiles to `sum`. After the first `own` tiles `next()` turns the operands to others
/// and returns how many tiles those have.
template <class T, class Operands, class Next>
__device__ void multiply_whole(Operands& operands, int own, int tiles, float* shared, const Place<T>& place,
                               float (&sum)[T::ROWS][T::COLS], Next next) {
    constexpr int COUNT = Operands::COUNT, LAST = (COUNT + 1) / 2 - 1, ALL = T::STAGES * T::STAGE;
    static_assert(LAST <= T::STEPS - 2 && T::SLICES == 1);
    if (tiles == 0) return;
    bool turned = false;
    const auto turn = [&] {
        if (own == 0 && !turned) own = next(), turned = true;
    };
#pragma unroll 1
    for (int stage = 0; stage < T::STAGES - 1; ++stage) {
        turn();
        if (own > 0) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) operands.copy(shared + stage * T::STAGE, i);
            operands.advance();
            --own;
        }
        __pipeline_commit();
    }
    __pipeline_wait_prior(T::STAGES - 2);
    __syncthreads();
    // This thread's first floats of a stage, from which every step is a constant away: from the stage itself NVRTC 13.0
    // adds up both addresses anew at every step.
    const float* const left_floats = shared + place.row;
    const float* const right_floats = shared + T::DEPTH * T::PITCH_M + place.col;
    Fragments<T> fragments[2];
    fragments[0].read(left_floats, right_floats);
    int read = 0, write = ALL - T::STAGE;
#pragma unroll 1
    while (tiles > 0) {
        turn();
        const bool copying = own > 0;
#pragma unroll 1
        for (int left = copying ? own : tiles; left > 0; --left, --tiles) {
#pragma unroll
            for (int step = 0; step < T::STEPS; ++step) {
                if (step == T::STEPS - 1) {
                    __pipeline_wait_prior(T::STAGES - 2);
                    __syncthreads();
                    if (tiles > 1) read = read + T::STAGE == ALL ? 0 : read + T::STAGE;
                }
                const int depth = (step + 1) % T::STEPS;
                fragments[(step + 1) % 2].read(left_floats + read + depth * T::PITCH_M,
                                               right_floats + read + depth * T::PITCH_N);
                if (copying)
#pragma unroll
                    for (int i = 2 * step; i < 2 * step + 2; ++i)
                        if (i < COUNT) operands.copy(shared + write, i);
                if (step == LAST) {
                    __pipeline_commit();
                    write = write + T::STAGE == ALL ? 0 : write + T::STAGE;
                    operands.advance();
                }
                fragments[step % 2].multiply(sum);
            }
        }
        own = 0;
    }
}

/// The same where nothing follows.
template <class T, class Operands>
__device__ void multiply_whole(Operands& operands, int tiles, float* shared, const Place<T>& place,
                               float (&sum)[T::ROWS][T::COLS]) {
    multiply_whole<T>(operands, tiles, tiles, shared, place, sum, [] { return 0; });
}
