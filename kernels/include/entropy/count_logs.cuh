#pragma once

// c ln c of counts in double precision, from a table where they are small: sums of it may cancel to 1e-16 of themselves.

constexpr int TABULATED = 1024;

/// Makes the table of c ln c for small counts.
extern "C" __global__ void count_log_table(double* table) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < TABULATED) table[c] = c == 0 ? 0.0 : c * log(static_cast<double>(c));
}

/// c ln c, the same bits for the same count; NaN for a negative one.
template <class Count>
__device__ double x_log_x(Count c, const double* __restrict__ table) {
    if (c >= 0 && c < TABULATED) return __ldg(table + c);
    return static_cast<double>(c) * log(static_cast<double>(c));
}

/// x ln x of any x; NaN for a negative one.
__device__ inline double x_log_x(double x) { return x == 0.0 ? 0.0 : x * log(x); }

/// The place of a count in the table; `small` stays as it is only where it has one, as a whole number below 1024 does.
__device__ inline int place_in_table(int c, bool& small) {
    small = small & (static_cast<unsigned int>(c) < TABULATED);
    return c & (TABULATED - 1);
}

__device__ inline int place_in_table(float c, bool& small) {
    const float raised = c + 0x1p23f;  // a whole number from 0 on is in the last bits
    small = small & (raised - 0x1p23f == c) & (__float_as_uint(raised) - 0x4b000000u < TABULATED);
    return __float_as_int(raised) & (TABULATED - 1);
}
