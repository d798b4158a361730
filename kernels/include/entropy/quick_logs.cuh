#pragma once

/// Logarithms of numbers up to 1/2 by one hardware instruction each, accurate there to 3 ulp; nearer to 1 its error is
/// absolute. What is larger, negative or NaN is remembered: then everything has to be done again, with more care.
struct QuickLogs {
    unsigned int largest = 0;

    /// log2(x), 0 < x <= 1/2; some finite number for 0.
    __device__ float log2_of(float x) {
        const unsigned int bits = __float_as_uint(x);
        largest = bits > largest ? bits : largest;
        return __log2f(fmaxf(x, 0x1p-126f));
    }
    __device__ bool sure() const { return largest <= 0x3f000000u; }
};
