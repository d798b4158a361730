#pragma once

#include "sums/reduce.cuh"

// Means and variances that survive a mean far larger than the deviation.

/// How many values, their mean, and the sum of their squared deviations from it.
struct Moments {
    double count;
    double mean;
    double squares;
};

/// Sums of a thread's values relative to the first of them: no larger than the spread demands.
struct PivotSums {
    float pivot;
    float sum = 0.0f;
    float squares = 0.0f;
    int count = 0;

    __device__ void add(float x) {
        if (count == 0) pivot = isinf(x) ? 0.0f : x;  // from an infinity nothing has a difference
        const float d = x - pivot;
        sum += d;
        squares = fmaf(d, d, squares);
        ++count;
    }
    __device__ Moments moments() const {
        if (count == 0) return {0.0, 0.0, 0.0};
        const double shift = static_cast<double>(sum) / count;
        return {static_cast<double>(count), pivot + shift, squares - shift * sum};
    }
};

/// The moments of all threads' values, in every thread of the block.
__device__ inline Moments block_moments(Moments own) {
    const double count = block_sum(own.count);
    const double mean = block_sum(own.count * own.mean) / count;
    const double apart = own.mean - mean;
    return {count, mean, block_sum(own.count > 0.0 ? fma(own.count * apart, apart, own.squares) : 0.0)};
}

/// The moments of `parts` sets together; of(part) gives those of one, and is asked twice for each. No division but one.
template <class Of>
__device__ Moments merged_moments(int parts, Of of) {
    double count = 0.0, sum = 0.0, squares = 0.0;
#pragma unroll 8
    for (int part = 0; part < parts; ++part) {
        const Moments one = of(part);
        count += one.count;
        sum = fma(one.count, one.mean, sum);
    }
    const double mean = sum / count;
#pragma unroll 8
    for (int part = 0; part < parts; ++part) {
        const Moments one = of(part);
        const double apart = one.mean - mean;
        squares += one.count > 0.0 ? fma(one.count * apart, apart, one.squares) : 0.0;
    }
    return {count, mean, squares};
}

/// Three doubles each.
__device__ inline void store_moments(double* to, long long at, Moments m) {
    to[3 * at] = m.count, to[3 * at + 1] = m.mean, to[3 * at + 2] = m.squares;
}

__device__ inline Moments load_moments(const double* from, long long at) {
    return {from[3 * at], from[3 * at + 1], from[3 * at + 2]};
}
