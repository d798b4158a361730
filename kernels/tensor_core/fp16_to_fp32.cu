#include "arrays/halves.cuh"

// The quiet NaN of the device's arithmetic for any NaN: what a conversion makes of a signalling one is not specified.
struct Quiet {
    __device__ float operator()(float x) const { return isnan(x) ? __int_as_float(0x7fffffff) : x; }
};

extern "C" __global__ void fp16_to_fp32(const __half* x, float* y, long long n) { map_from_halves(x, y, n, Quiet{}); }

// Bits to bits, in arrays that begin inside others: x at `start`, y at `to`.
extern "C" __global__ void fp16_to_fp32_views(const unsigned short* x, unsigned int* y, int start, int to,
                                              long long n) {
    map_from_halves(reinterpret_cast<const __half*>(x) + start, reinterpret_cast<float*>(y) + to, n, Quiet{});
}
