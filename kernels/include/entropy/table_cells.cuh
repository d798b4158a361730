#pragma once

#include "entropy/count_logs.cuh"
#include "sums/reduce.cuh"

// Four neighbouring cells of a table of counts or probabilities, what cells four columns wide add up to, and the threads
// that share a table.

template <class Count>
struct Fours;
template <>
struct Fours<float> { using type = float4; };
template <>
struct Fours<int> { using type = int4; };
template <class Count>
using Four = typename Fours<Count>::type;

/// The table of c ln c where a kernel made it itself, in shared memory, or where it is in global memory.
struct TableOnChip {
    const double* logs;
    __device__ double operator[](int place) const { return logs[place]; }
};
struct TableInMemory {
    const double* logs;
    __device__ double operator[](int place) const { return __ldg(logs + place); }
};

/// Four neighbouring cells; one after the other where they are not aligned.
template <class Count>
struct Cells {
    Count value[4];

    __device__ static Cells of(const Count* from, bool aligned) {
        if (!aligned) return {{__ldcs(from), __ldcs(from + 1), __ldcs(from + 2), __ldcs(from + 3)}};
        const auto four = __ldcs(reinterpret_cast<const Four<Count>*>(from));
        return {{four.x, four.y, four.z, four.w}};
    }
};

/// What cells four columns wide add up to, in T: their logarithms, the columns, and each row as it comes. Where T is float
/// and a cell has no place in the table of logarithms, `small` becomes false.
template <class T>
struct Columns {
    double logs[4] = {};
    T column[4] = {};
    int occupied = 0;
    bool small = true;

    template <class Count, class Table>
    __device__ T add(const Cells<Count>& cells, const Table& table) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const Count c = cells.value[k];
            if constexpr (sizeof(T) == sizeof(float)) logs[k] += table[place_in_table(c, small)];
            else logs[k] += x_log_x(static_cast<double>(c));
            column[k] += static_cast<T>(c);
            occupied += c != Count(0);
        }
        return (static_cast<T>(cells.value[0]) + static_cast<T>(cells.value[1]))
               + (static_cast<T>(cells.value[2]) + static_cast<T>(cells.value[3]));
    }
    __device__ double log_sum() const { return (logs[0] + logs[1]) + (logs[2] + logs[3]); }
};

/// The threads that share a table: a warp, or a block of four.
template <int WARPS>
struct Group {
    static constexpr int SIZE = 32 * WARPS;
    int thread = threadIdx.x % SIZE;

    __device__ bool all(bool own) const {
        if constexpr (WARPS == 1) {
            __syncwarp();
            return __all_sync(FULL_WARP, own);
        }
        return __syncthreads_and(own);
    }
    template <class T>
    __device__ T sum(T own) const {
        if constexpr (WARPS == 1) return warp_reduce(own, Sum{});
        else return block_reduce(own, Sum{}, T(0));
    }
};

/// Adds up COUNT values each over the lanes that differ in the bits LOW to COUNT / 2 LOW: of those lanes, the one whose
/// bits are k LOW gets the k-th sum.
template <int COUNT, int LOW, class T>
__device__ T sums_by_lane(T (&value)[COUNT]) {
#pragma unroll
    for (int half = COUNT / 2; half > 0; half /= 2) {
        const bool upper = threadIdx.x & half * LOW;
#pragma unroll
        for (int k = 0; k < half; ++k) {
            const T given = upper ? value[k] : value[k + half], kept = upper ? value[k + half] : value[k];
            value[k] = kept + shuffle_xor(given, half * LOW);
        }
    }
    return value[0];
}
