#include "layers/activations.cuh"
#include "arrays/halves.cuh"

// Into the finite range of half; NaN stays NaN.
struct Saturate {
    __device__ float operator()(float x) const { return x > 65504.0f ? 65504.0f : x < -65504.0f ? -65504.0f : x; }
};

template <class F>
__global__ void fp32_to_fp16(const float* x, __half* y, long long n) {
    map_to_halves(x, y, n, F{});
}

// Arrays that begin inside others: x at `from`, y at `to`. `bits` holds halves.
template <class F>
__global__ void fp32_to_fp16_views(const float* x, unsigned short* bits, int from, int to, long long n) {
    map_to_halves(x + from, reinterpret_cast<__half*>(bits) + to, n, F{});
}
