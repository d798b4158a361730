// Warp matrix functions: fragments with CUDA's shape, products computed by the last lane to arrive.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_on_cpu/matrix_layout.h"

namespace nvcuda {
namespace wmma {

enum layout_t { mem_row_major, mem_col_major };

template <typename Use, int M, int N, int K, typename T, typename Layout = void>
struct fragment {
    using element_type = typename cuda_cpu::Stored<T>::type;
    static constexpr int num_elements = cuda_cpu::elements_per_lane<Use, M, N, K, T>();
    static constexpr int num_storage_elements = num_elements;
    element_type x[num_elements];
};

inline float __float_to_tf32(float value) { return cuda_cpu::to_tf32(value); }

template <typename Use, int M, int N, int K, typename T, typename Layout, typename V>
inline void fill_fragment(fragment<Use, M, N, K, T, Layout>& f, const V& value) {
    for (auto& element : f.x) element = value;
}

template <typename Use, int M, int N, int K, typename T, typename Layout, typename P>
inline void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f, const P* memory, unsigned stride, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    cuda_cpu::check_matrix(memory, stride * sizeof(P), site);
    cuda_cpu::meet("load_matrix_sync", site);
    constexpr bool by_rows = !std::is_same<Layout, col_major>::value;
    constexpr int once = f.num_elements / cuda_cpu::copies<Use, M, N, K, T>();
    for (int i = 0; i < once; ++i) {
        const cuda_cpu::Place p = cuda_cpu::place<Use, M, N, K, T>(cuda_cpu::lane_index(), i);
        f.x[i] = memory[by_rows ? p.row * stride + p.column : p.column * stride + p.row];
    }
    for (int i = once; i < f.num_elements; ++i) f.x[i] = f.x[i - once];
}

template <int M, int N, int K, typename T, typename P>
inline void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const P* memory, unsigned stride, layout_t layout, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    cuda_cpu::check_matrix(memory, stride * sizeof(P), site);
    cuda_cpu::meet("load_matrix_sync", site);
    for (int i = 0; i < f.num_elements; ++i) {
        const cuda_cpu::Place p = cuda_cpu::place<accumulator, M, N, K, T>(cuda_cpu::lane_index(), i);
        f.x[i] = memory[layout == mem_row_major ? p.row * stride + p.column : p.column * stride + p.row];
    }
}

template <int M, int N, int K, typename T, typename P>
inline void store_matrix_sync(P* memory, const fragment<accumulator, M, N, K, T>& f, unsigned stride, layout_t layout, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    cuda_cpu::check_matrix(memory, stride * sizeof(P), site);
    cuda_cpu::meet("store_matrix_sync", site);
    for (int i = 0; i < f.num_elements; ++i) {
        const cuda_cpu::Place p = cuda_cpu::place<accumulator, M, N, K, T>(cuda_cpu::lane_index(), i);
        memory[layout == mem_row_major ? p.row * stride + p.column : p.column * stride + p.row] = f.x[i];
    }
}

template <int M, int N, int K, typename TA, typename LA, typename TB, typename LB, typename TC, typename TD>
inline void mma_sync(fragment<accumulator, M, N, K, TD>& d, const fragment<matrix_a, M, N, K, TA, LA>& a,
                     const fragment<matrix_b, M, N, K, TB, LB>& b, const fragment<accumulator, M, N, K, TC>& c, bool = false,
                     cuda_cpu::Site site = CUDA_CPU_CALLER) {
    cuda_cpu::MatrixOperands operands{d.x, a.x, b.x, c.x};
    cuda_cpu::warp_collective(~0u, "mma_sync", &operands, cuda_cpu::combine_product<M, N, K, TA, TC, TD>, site);
}

}  // namespace wmma
}  // namespace nvcuda
