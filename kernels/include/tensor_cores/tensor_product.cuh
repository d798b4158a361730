#pragma once

#include "layers/half_gelu.cuh"
#include "tensor_cores/streamed_product.cuh"
#include "tensor_cores/tensor_tile.cuh"
#include "tensor_cores/thirds_tile.cuh"
#include "tensor_cores/turned_bytes.cuh"
#include "tensor_cores/turned_tile.cuh"
#include "tensor_cores/warpgroup_tile.cuh"

/// How a kernel gets its operands and its result: as pointers, or as tensor maps where T::BY_MAPS.
template <class T, bool BY_MAPS = T::BY_MAPS>
struct Passed {
    using Operand = const typename T::Element::Memory*;
    using Sums = float*;
};
template <class T>
struct Passed<T, true> {
    using Operand = TensorMap;
    using Sums = TensorMap;
};
template <class E, int STAGES>
struct Passed<Turned<E, STAGES>, true> {
    using Operand = TensorMap;
    using Sums = float*;
};
template <class T>
using OperandOf = typename Passed<T>::Operand;
template <class T>
using SumsOf = typename Passed<T>::Sums;

/// The clusters of a kernel with tiles T.
#if defined(CPU_CUDA) || __CUDA_ARCH__ < 900
#define CLUSTERED(T)
#else
#define CLUSTERED(T) __cluster_dims__(T::CLUSTER, 1, 1)
#endif

/// c = f(a b + bias) with FP32 sums; a null bias is none. A is [m, k] (LEFT_ALONG) or [k, m], B is [n, k] (RIGHT_ALONG)
/// or [k, n]. A block of the 1-D grid has a tile, or by warpgroups one after the other; `shared` has room for all
/// stages.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, int WIDTH, class F>
__device__ void multiply_on_tensor_cores(const OperandOf<T>& a, const OperandOf<T>& b, const float* bias,
                                         const SumsOf<T>& c, int m, int n, int k, void* shared, F f) {
    if constexpr (T::BY_WARPGROUPS && is_pair<typename T::Element>()) {
        static_assert(LEFT_ALONG && !RIGHT_ALONG);
        multiply_in_thirds<T>(a, b, bias, c, m, n, k, shared, f);
    } else if constexpr (T::BY_WARPGROUPS && T::Element::KIND == Tf32::KIND) {
        static_assert(LEFT_ALONG && !RIGHT_ALONG);
        multiply_turned<T>(a, b, bias, c, m, n, k, shared, f);
    } else if constexpr (T::BY_MAPS && T::Element::KIND == Float8::KIND && !RIGHT_ALONG) {
        static_assert(LEFT_ALONG);
        multiply_turned_bytes<T>(a, b, bias, c, m, n, k, shared, f);
    } else if constexpr (T::BY_MAPS) {
        multiply_streamed<T, LEFT_ALONG, RIGHT_ALONG>(a, b, bias, c, m, n, k, shared, f);
    } else if constexpr (T::BY_WARPGROUPS) {
        multiply_on_warpgroups<T, LEFT_ALONG, RIGHT_ALONG>(a, b, bias, c, m, n, k, shared, f);
    } else {
        using O = Operands<T, LEFT_ALONG, RIGHT_ALONG, WIDTH>;
        using Word = typename O::Word;
        const BlockTile tile((m + T::M - 1) / T::M, (n + T::N - 1) / T::N, 16);
        const WarpPlace<T> place;
        O source;
        source.left.start(reinterpret_cast<const Word*>(a), tile.row * T::M, m, k);
        source.right.start(reinterpret_cast<const Word*>(b), tile.col * T::N, n, k);
        float sum[T::ROWS][2 * T::COLS][4] = {};
        multiply_stages<MmaFragments<O>>(source, depth_tiles<T>(k), static_cast<Word*>(shared), sum);
        store_sums<T>(sum, bias, c, m, n, tile.row * T::M + place.row, tile.col * T::N + place.col, f);
    }
}
