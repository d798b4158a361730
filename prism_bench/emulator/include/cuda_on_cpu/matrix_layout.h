// Which element of a matrix each lane's fragment holds, and the product of whole fragments.
#pragma once

#include "narrow_float.h"
#include "warp_functions.h"

namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
namespace precision {
struct tf32 {};
}  // namespace precision

}  // namespace wmma
}  // namespace nvcuda

namespace cuda_cpu {

using nvcuda::wmma::accumulator;
using nvcuda::wmma::matrix_a;
using nvcuda::wmma::matrix_b;
using nvcuda::wmma::precision::tf32;

template <typename T>
struct Stored { using type = T; };
template <>
struct Stored<tf32> { using type = float; };

struct Place {
    unsigned row, column;
};

template <typename Use, int M, int N, int K>
constexpr int rows() { return std::is_same<Use, matrix_b>::value ? K : M; }
template <typename Use, int M, int N, int K>
constexpr int columns() { return std::is_same<Use, matrix_a>::value ? K : N; }

// half's inputs hold each element twice, as CUDA declares them.
template <typename Use, int M, int N, int K, typename T>
constexpr int copies() {
    constexpr int once = rows<Use, M, N, K>() * columns<Use, M, N, K>() / 32;
    return !std::is_same<Use, accumulator>::value && std::is_same<T, __half>::value ? 16 / once : 1;
}

template <typename Use, int M, int N, int K, typename T>
constexpr int elements_per_lane() {
    static_assert((M == 16 && N == 16 && K == 16) || (M == 32 && N == 8 && K == 16) || (M == 8 && N == 32 && K == 16) ||
                      (M == 16 && N == 16 && K == 8) || (M == 8 && N == 8 && K == 4), "no such WMMA shape");
    return rows<Use, M, N, K>() * columns<Use, M, N, K>() / 32 * copies<Use, M, N, K, T>();
}

// 8x8 pieces as the tensor core's own instruction has them: four lanes to a row, neighbouring pairs to a lane
// (PTX ISA, "Matrix Fragments for mma.m16n8k16"). Kernels must not count on it.
template <typename Use, int M, int N, int K, typename T>
inline Place place(unsigned lane, int element) {
    constexpr unsigned height = rows<Use, M, N, K>(), width = columns<Use, M, N, K>();
    constexpr unsigned once = height * width / 32;
    const unsigned e = static_cast<unsigned>(element) % once;
    if constexpr (height < 8 || width < 8 || once < 2) {
        const unsigned linear = lane * once + e;
        return {linear / width, linear % width};
    } else {
        constexpr bool by_columns = std::is_same<Use, matrix_b>::value;
        const unsigned piece = e / 2, pieces_down = height / 8;
        const unsigned across = (lane & 3) * 2 + (e & 1), down = lane >> 2;
        const unsigned top = piece % pieces_down * 8, left = piece / pieces_down * 8;
        return by_columns ? Place{top + across, left + down} : Place{top + down, left + across};
    }
}

inline float to_tf32(float value) {
    const uint32_t bits = bits_as<uint32_t>(value);
    if ((bits & 0x7f800000u) == 0x7f800000u) return value;
    return bits_as<float>((bits + 0x1000u) & ~0x1fffu);
}

inline void check_matrix(const void* memory, size_t stride_bytes, Site site) {
    require_aligned("WMMA's matrix", memory, 32, site);
    if (stride_bytes % 16) stop_launch("misaligned", "the leading dimension of WMMA's matrix has to be a multiple of 16 bytes", site);
}

// All lanes are here before one touches memory, as CUDA promises; it orders no access. What others read of a matrix that
// was stored needs a __syncwarp of its own.
inline void meet(const char* name, Site site) {
    int nothing = 0;
    warp_collective(~0u, name, &nothing, combine_nothing, site);
}

struct MatrixOperands {
    void* d;
    const void* a;
    const void* b;
    const void* c;
};

// The tensor core ignores the low 13 bits of a tf32 operand.
template <typename T>
inline auto operand(const typename Stored<T>::type& value) {
    if constexpr (std::is_same<T, tf32>::value) return bits_as<float>(bits_as<uint32_t>(value) & ~0x1fffu);
    else if constexpr (std::is_integral<T>::value) return static_cast<int>(value);
    else if constexpr (std::is_same<T, double>::value) return value;
    else return static_cast<float>(value);
}

template <typename Use, int M, int N, int K, typename T, typename Wide>
CUDA_CPU_UNCHECKED void gather(const Gathering& g, const void* MatrixOperands::*which, Wide* dense) {
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(g.arrived >> lane & 1)) continue;
        auto* x = static_cast<const typename Stored<T>::type*>(static_cast<MatrixOperands*>(g.slots[lane])->*which);
        for (int i = 0; i < elements_per_lane<Use, M, N, K, T>() / copies<Use, M, N, K, T>(); ++i) {
            const Place p = place<Use, M, N, K, T>(lane, i);
            dense[p.row * columns<Use, M, N, K>() + p.column] = operand<T>(x[i]);
        }
    }
}

template <int M, int N, int K, typename T, typename Wide>
CUDA_CPU_UNCHECKED void scatter(const Gathering& g, const Wide* dense) {
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(g.arrived >> lane & 1)) continue;
        T* x = static_cast<T*>(static_cast<MatrixOperands*>(g.slots[lane])->d);
        for (int i = 0; i < elements_per_lane<accumulator, M, N, K, T>(); ++i) {
            const Place p = place<accumulator, M, N, K, T>(lane, i);
            x[i] = T(dense[p.row * N + p.column]);
        }
    }
}

// Sums run over k in order, in the accumulator's type (half accumulates in float and rounds at the end).
template <int M, int N, int K, typename In, typename TC, typename TD>
CUDA_CPU_UNCHECKED void combine_product(Gathering& g) {
    using Wide = decltype(operand<In>(typename Stored<In>::type()));
    Wide a[M * K] = {}, b[K * N] = {}, sum[M * N] = {};
    gather<matrix_a, M, N, K, In>(g, &MatrixOperands::a, a);
    gather<matrix_b, M, N, K, In>(g, &MatrixOperands::b, b);
    gather<accumulator, M, N, K, TC>(g, &MatrixOperands::c, sum);
    for (int row = 0; row < M; ++row)
        for (int k = 0; k < K; ++k)
            for (int column = 0; column < N; ++column) sum[row * N + column] += a[row * K + k] * b[k * N + column];
    scatter<M, N, K, TD>(g, sum);
}

}  // namespace cuda_cpu
