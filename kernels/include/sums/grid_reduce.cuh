#pragma once

#include "arrays/map_arrays.cuh"

// Reductions of several values over a grid, each by an operation of its own.

// What a reduction is made of: `term` of one value, and the operator for two.
struct SumOf {
    __device__ static double nothing() { return 0.0; }
    __device__ static double term(double r) { return r; }
    __device__ double operator()(double a, double b) const { return a + b; }
};
struct SquaresOf {
    __device__ static double nothing() { return 0.0; }
    __device__ static double term(double r) { return r * r; }
    __device__ double operator()(double a, double b) const { return a + b; }
};
struct LargestOf {  // a NaN wins
    __device__ static double nothing() { return -static_cast<double>(infinity()); }
    __device__ static double term(double r) { return r; }
    __device__ double operator()(double a, double b) const { return a > b || isnan(a) ? a : b; }
};

/// The block's share of a reduction of what `count` blocks left `stride` apart.
template <class Op>
__device__ double reduce_blocks(const double* left, unsigned int count, int stride) {
    double part = Op::nothing();
    for (unsigned int i = threadIdx.x; i < count; i += blockDim.x) part = Op{}(part, __ldcg(left + i * stride));
    return block_reduce(part, Op{}, Op::nothing());
}

/// The reductions of `part` over the threads of `count` blocks that `place` numbers: in thread 0 of one block only (true
/// there), in a fixed order. `by_block` has room for as many values of each block as there are operations.
template <class... Ops>
__device__ bool grid_reduce(double (&part)[sizeof...(Ops)], double* by_block, unsigned int* arrived,
                            unsigned int place = blockIdx.x, unsigned int count = gridDim.x) {
    constexpr int VALUES = sizeof...(Ops);
    int j = 0;
    ((part[j] = block_reduce(part[j], Ops{}, Ops::nothing()), ++j), ...);
    if (count == 1) return threadIdx.x == 0;
    if (threadIdx.x == 0)
        for (j = 0; j < VALUES; ++j) by_block[place * VALUES + j] = part[j];
    if (!last_block(arrived, count)) return false;
    j = 0;
    ((part[j] = reduce_blocks<Ops>(by_block + j, count, VALUES), ++j), ...);
    return threadIdx.x == 0;
}

/// The reduction of f(in[i]...) over this thread's i < n of a 1-D grid, as thread_sum.
template <class T, class Op, class F, class... Ins>
__device__ double thread_reduce(long long n, F f, const Ins*... in) {
    constexpr int WIDTH = Packet<T>::WIDTH;
    const long long whole = packets(n, in...);
    double part = Op::nothing();
    const auto add = [&](auto... v) {
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) part = Op{}(part, Op::term(f(v.at[k]...)));
    };
#pragma unroll 2
    for (long long at = grid_thread(); at < whole; at += grid_threads()) add(Packet<T>::load(in, at)...);
#pragma unroll 1
    for (long long i = WIDTH * whole + grid_thread(); i < n; i += grid_threads()) part = Op{}(part, Op::term(f(in[i]...)));
    return part;
}
