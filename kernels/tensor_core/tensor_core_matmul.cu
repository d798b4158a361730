#include "layers/activations.cuh"
#include "tensor_cores/tensor_product.cuh"

extern __shared__ __align__(128) unsigned char stages[];

/// c = a b in FP32 from half operands: a is [m, k] (LEFT_ALONG) or [k, m], b is [n, k] (RIGHT_ALONG) or [k, n].
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, int WIDTH>
CLUSTERED(T) __global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
tensor_core_matmul(__grid_constant__ const OperandOf<T> a, __grid_constant__ const OperandOf<T> b, __grid_constant__ const SumsOf<T> c,
                   int m, int n, int k) {
    multiply_on_tensor_cores<T, LEFT_ALONG, RIGHT_ALONG, WIDTH>(a, b, nullptr, c, m, n, k, stages, Identity{});
}

struct Times {
    float factor;
    __device__ float operator()(float x) const { return factor * x; }
};

/// c = a b in FP32, times the scales of both operands.
template <class T, bool LEFT_ALONG, bool RIGHT_ALONG, int WIDTH>
CLUSTERED(T) __global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
tensor_core_matmul_scaled(__grid_constant__ const OperandOf<T> a, __grid_constant__ const OperandOf<T> b,
                          const float* scale_a, const float* scale_b, __grid_constant__ const SumsOf<T> c, int m, int n,
                          int k) {
    const Times scaled = {*scale_a * *scale_b};
    multiply_on_tensor_cores<T, LEFT_ALONG, RIGHT_ALONG, WIDTH>(a, b, nullptr, c, m, n, k, stages, scaled);
}

/// y = x rounded to half, to nearest even, in groups of four where both are aligned.
extern "C" __global__ void round_to_half(const float* x, half* y, long long n) {
    const auto rounded = [](float value) { return __half_as_ushort(__float2half_rn(value)); };
    const long long vectors = misalignment(x) == 0 ? n / 4 : 0;
    for (long long at = grid_thread(); at < vectors; at += grid_threads()) {
        const float4 v = load4(x + 4 * at);
        reinterpret_cast<ushort4*>(y)[at] = make_ushort4(rounded(v.x), rounded(v.y), rounded(v.z), rounded(v.w));
    }
    for (long long at = 4 * vectors + grid_thread(); at < n; at += grid_threads()) y[at] = __float2half_rn(x[at]);
}
