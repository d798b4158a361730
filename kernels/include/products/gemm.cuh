#pragma once

#include "layers/activations.cuh"
#include "products/gemm_tile.cuh"
#include "products/whole_tile.cuh"

// C = f(A B + bias), a tile per block of a 1-D grid. A is [m, k]; B is [k, n], or [n, k] where it is TURNED. WIDTH is
// 4 where the rows of B and C are whole groups of four floats, else 1.

/// Whole tiles, of which the last round over the multiprocessors would have few: it has small ones in their place.
struct Split : WholeTile<128, 256, 8, 2, 4, 8> {
    struct Part : Tile<32, 32, 32, 4, 1, 1, 8, 1> {
        static constexpr bool WHOLE = true;
    };
    static constexpr int DOWN = M / Part::M, PARTS = DOWN * (N / Part::N);
    static constexpr int SHARED = Part::SHARED > WholeTile::SHARED ? Part::SHARED : WholeTile::SHARED;
};

template <class T, int WIDTH, bool TURNED>
struct RightCopy : StraightCopy<T, T::N, WIDTH> {
    __device__ void begin(const float* b, int n, int, int col) { this->start(b, n, col); }
};

template <class T, int WIDTH>
struct RightCopy<T, WIDTH, true> : TurningCopy<T, T::N> {
    __device__ void begin(const float* b, int n, int k, int col) {
        const long long line = k;
        this->start(b + (col + this->first()) * line, this->APART * line, n - col);
    }
};

template <class T, int WIDTH, bool TURNED>
struct OperandCopies {
    TurningCopy<T, T::M> left;
    RightCopy<T, WIDTH, TURNED> right;
    int depth, tiles;

    __device__ bool whole() const { return left.whole(depth) && right.whole(depth); }

    template <bool WHOLE>
    __device__ void copy(float* stage, int part, int parts) {
        left.template copy<WHOLE>(stage, depth, part, parts);
        right.template copy<WHOLE>(stage + T::DEPTH * T::PITCH_M, depth, part, parts);
        if (part < parts - 1) return;
        depth -= T::DEPTH;
        --tiles;
    }

    __device__ void next() {}
};

template <class T, bool TURNED>
struct WholeOperands : StraightOperands<T> {
    __device__ void begin(const float* b, int n, int, int col) { this->start_right(b, n, col); }
};

template <class T>
struct WholeOperands<T, true> : TurnedOperands<T> {
    __device__ void begin(const float* b, int, int k, int col) { this->right = this->lines(b, col, k); }
};

/// sum = f(sum + bias of its column); a null bias is none.
template <class T, class F>
__device__ void activate(const float* bias, int col, int n, const Place<T>& place, F f,
                         float (&sum)[T::ROWS][T::COLS]) {
#pragma unroll
    for (int j = 0; j < T::COLS; ++j) {
        const int at = col + place.col_at(j);
        const float added = bias != nullptr && at < n ? __ldg(bias + at) : 0.0f;
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i) sum[i][j] = f(bias != nullptr ? sum[i][j] + added : sum[i][j]);
    }
}

/// Four sums in order, through 16 bytes of shared memory. Stored as they are, they would have registers of the same bank
/// as the operand of their column, for which every FMA waits; written with neighbours swapped, they have the other bank.
#ifdef CPU_CUDA
__device__ inline float4 from_other_bank(float*, const float* sum) {
    return make_float4(sum[0], sum[1], sum[2], sum[3]);
}
#else
__device__ inline float4 from_other_bank(float* spare, const float* sum) {
    const unsigned int at = static_cast<unsigned int>(__cvta_generic_to_shared(spare));
    float4 v;
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" : : "r"(at), "f"(sum[1]), "f"(sum[0]), "f"(sum[3]), "f"(sum[2])
                 : "memory");
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.y), "=f"(v.x), "=f"(v.w), "=f"(v.z) : "r"(at)
                 : "memory");
    return v;
}
#endif

/// `spare` is 16 bytes of shared memory that no other thread uses.
template <class T, int WIDTH>
__device__ void store_rows(float* c, int m, int n, int row, int col, const Place<T>& place, float* spare,
                           const float (&sum)[T::ROWS][T::COLS]) {
#pragma unroll
    for (int i = 0; i < T::ROWS; ++i) {
        if (row + place.row_at(i) >= m) continue;
        float* const line = c + static_cast<long long>(row + place.row_at(i)) * n;
#pragma unroll
        for (int j = 0; j < T::COLS; j += WIDTH) {
            const int at = col + place.col_at(j);
            if (at >= n) continue;
            const float* const from = sum[i] + j;
            if constexpr (WIDTH == 4) store4(line + at, from_other_bank(spare, from));
            else line[at] = from[0];
        }
    }
}

/// Adds the product of a block's rows of A and columns of B to `sum`.
template <class T, int WIDTH, bool TURNED>
__device__ void add_product(const float* a, const float* b, int m, int n, int k, int row, int col, float* shared,
                            const Place<T>& place, float (&sum)[T::ROWS][T::COLS]) {
    OperandCopies<T, WIDTH, TURNED> source;
    const long long line = k;
    source.left.start(a + (row + source.left.first()) * line, source.left.APART * line, m - row);
    source.right.begin(b, n, k, col);
    source.depth = k;
    source.tiles = depth_tiles<T>(k);
    multiply_tiles<T>(source, source.tiles, shared, place, sum);
    combine_slices<T>(shared, place, sum);
}

/// The same of whole tiles without slices.
template <class T, bool TURNED>
__device__ void add_whole_product(const float* a, const float* b, int n, int k, int row, int col, float* shared,
                                  const Place<T>& place, float (&sum)[T::ROWS][T::COLS]) {
    WholeOperands<T, TURNED> operands;
    operands.left = operands.lines(a, row, k);
    operands.begin(b, n, k, col);
    multiply_whole<T>(operands, k / T::DEPTH, shared, place, sum);
}

/// One tile of C, from its first row and column on.
template <class T, int WIDTH, bool TURNED, class F>
__device__ void multiply_tile(const float* a, const float* b, const float* bias, float* c, int m, int n, int k, int row,
                              int col, float* shared, F f) {
    const Place<T> place;
    float sum[T::ROWS][T::COLS] = {};
    if constexpr (T::WHOLE && T::SLICES == 1) add_whole_product<T, TURNED>(a, b, n, k, row, col, shared, place, sum);
    else add_product<T, WIDTH, TURNED>(a, b, m, n, k, row, col, shared, place, sum);
    __syncthreads();
    if (place.slice > 0) return;
    activate<T>(bias, col, n, place, f, sum);
    store_rows<T, WIDTH>(c, m, n, row, col, place, shared + 4 * threadIdx.x, sum);
}

template <class T, int WIDTH, bool TURNED, class F>
__device__ void multiply_block(const float* a, const float* b, const float* bias, float* c, int m, int n, int k,
                               float* shared, F f) {
    const int rows = (m + T::M - 1) / T::M, cols = (n + T::N - 1) / T::N;
    if constexpr (T::PARTS > 1) {
        // The grid has a block for each of the first tiles and one for each part of the others.
        using Part = typename T::Part;
        const int whole = (T::PARTS * rows * cols - static_cast<int>(gridDim.x)) / (T::PARTS - 1);
        const int beyond = static_cast<int>(blockIdx.x) - whole, part = beyond % T::PARTS;
        if (beyond >= 0) {
            const BlockTile tile(rows, cols, 16, whole + beyond / T::PARTS);
            const int row = tile.row * T::M + part % T::DOWN * Part::M, col = tile.col * T::N + part / T::DOWN * Part::N;
            return multiply_tile<Part, WIDTH, TURNED>(a, b, bias, c, m, n, k, row, col, shared, f);
        }
    }
    const BlockTile tile(rows, cols, 16);
    multiply_tile<T, WIDTH, TURNED>(a, b, bias, c, m, n, k, tile.row * T::M, tile.col * T::N, shared, f);
}

template <class T, int WIDTH, bool TURNED, class F>
__device__ void multiply_matrices(const float* a, const float* b, const float* bias, float* c, int m, int n, int k,
                                  F f) {
    if constexpr (GIVEN_MEMORY<T>) {
        extern __shared__ __align__(128) float given[];
        multiply_block<T, WIDTH, TURNED>(a, b, bias, c, m, n, k, given, f);
    } else {
        __shared__ __align__(16) float shared[T::SHARED];
        multiply_block<T, WIDTH, TURNED>(a, b, bias, c, m, n, k, shared, f);
    }
}
