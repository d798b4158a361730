#pragma once

#include "entropy/given_margins.cuh"
#include "entropy/table_cells.cuh"

// Tables of 32 rows and columns of any numbers, whose margins are their own: the terms are those of given_margins.cuh, of
// margins that a warp adds up in double precision and splits into two floats each.

/// A number as the sum of two floats.
struct TwoFloats {
    float high, low;

    __device__ static TwoFloats of(double exact) {
        const float high = static_cast<float>(exact);
        return {high, static_cast<float>(exact - high)};
    }
    /// That of another lane.
    __device__ TwoFloats from(int lane) const {
        return {__shfl_sync(FULL_WARP, high, lane), __shfl_sync(FULL_WARP, low, lane)};
    }
};

/// c - a b, precise where they are nearly the same; `product` becomes a b.
__device__ inline float apart_from(float c, TwoFloats a, TwoFloats b, float& product) {
    product = a.high * b.high;
    const float rest = fmaf(a.low, b.high, fmaf(a.high, b.low, fmaf(a.high, b.high, -product)));
    return (c - product) - rest;
}

/// Loads a lane's cells of a square table: four columns of every fourth row.
__device__ inline void load_square(const float* from, bool aligned, float (&cell)[GIVEN_ROWS][4]) {
    from += 4 * (threadIdx.x % 32);
    if (aligned) {
#pragma unroll
        for (int k = 0; k < GIVEN_ROWS; ++k) {
            const float4 v = load4_streamed(from + 128 * k);
            cell[k][0] = v.x, cell[k][1] = v.y, cell[k][2] = v.z, cell[k][3] = v.w;
        }
    } else {
#pragma unroll
        for (int k = 0; k < GIVEN_ROWS; ++k)
#pragma unroll
            for (int j = 0; j < 4; ++j) cell[k][j] = __ldcs(from + 128 * k + j);
    }
}

/// What a warp finds of a table: n I, n, and occupied cells - rows - columns. `sure` where all its numbers are ordinary.
struct SquareSums {
    double total, n;
    int excess;
    bool sure;
};

/// The sum of row 4 (lane % 8) + lane / 8; half of a lane's rows at a time, so that fewer of them are on their way.
__device__ inline double row_sum(const float (&cell)[GIVEN_ROWS][4]) {
    constexpr int HALF = GIVEN_ROWS / 2;
    double part[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        double row[HALF];
#pragma unroll
        for (int k = 0; k < HALF; ++k) {
            const float(&four)[4] = cell[half * HALF + k];
            row[k] = (static_cast<double>(four[0]) + four[1]) + (static_cast<double>(four[2]) + four[3]);
        }
        part[half] = sums_by_lane<HALF, 1>(row);
    }
    const bool upper = threadIdx.x & HALF;
    return (upper ? part[1] : part[0]) + shuffle_xor(upper ? part[0] : part[1], HALF);
}

/// The sum of column 4 (lane % 8) + lane / 8.
__device__ inline double column_sum(const float (&cell)[GIVEN_ROWS][4]) {
    double column[4] = {};
#pragma unroll
    for (int k = 0; k < GIVEN_ROWS; ++k)
#pragma unroll
        for (int j = 0; j < 4; ++j) column[j] += cell[k][j];
    return sums_by_lane<4, 8>(column);
}

/// The sums of the table whose cells the warp has by load_square.
__device__ inline SquareSums square_sums(const float (&cell)[GIVEN_ROWS][4], int corrected) {
    const int lane = threadIdx.x % 32;
    // of row 4 (lane % 8) + lane / 8, and of the column of the same number
    const double across = row_sum(cell), down = column_sum(cell);
    const double n = warp_reduce(across, Sum{});
    const TwoFloats own_row = TwoFloats::of(across), own_share = TwoFloats::of(down / n);
    TwoFloats share[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) share[j] = own_share.from(lane % 8 + 8 * j);
    CellTerms term;
    float sum[4] = {};
#pragma unroll
    for (int k = 0; k < GIVEN_ROWS; ++k) {
        const TwoFloats margin = own_row.from(lane / 8 * 8 + k);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            float expected;
            const float apart = apart_from(cell[k][j], margin, share[j], expected);
            sum[j] += term(cell[k][j], expected, apart);
        }
    }
    const bool sure = term.sure() && moderate(own_row.high) && moderate(own_share.high);
    int excess = 0;
    if (corrected) {
#pragma unroll
        for (int k = 0; k < GIVEN_ROWS; ++k)
#pragma unroll
            for (int j = 0; j < 4; ++j) excess += cell[k][j] != 0.0f;
        excess = warp_reduce(excess - (across != 0.0) - (down != 0.0), Sum{});
    }
    const double total = (static_cast<double>(sum[0]) + sum[1]) + (static_cast<double>(sum[2]) + sum[3]);
    return {warp_reduce(total, Sum{}), n, excess, __all_sync(FULL_WARP, sure) != 0};
}
