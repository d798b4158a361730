#pragma once

#include "reduce.cuh"

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
        if (count == 0) pivot = x;
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
