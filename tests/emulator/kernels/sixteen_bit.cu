// Conversions and arithmetic of half and bfloat16, element by element; values travel as their bits.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T>
__device__ T from_bits(unsigned short bits) { return *reinterpret_cast<T*>(&bits); }
template <typename T>
__device__ unsigned short to_bits(T value) { return *reinterpret_cast<unsigned short*>(&value); }

#define AT const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return

template <typename T>
__global__ void widen(const unsigned short* x, float* y, int n) { AT; y[i] = static_cast<float>(from_bits<T>(x[i])); }
template <typename T>
__global__ void narrow(const float* x, unsigned short* y, int n) { AT; y[i] = to_bits(T(x[i])); }
template <typename T>
__global__ void narrow_double(const double* x, unsigned short* y, int n) { AT; y[i] = to_bits(T(x[i])); }

#define BINARY(name, expression) \
    template <typename T> __global__ void name(const unsigned short* x, const unsigned short* y, unsigned short* z, int n) { \
        AT; const T a = from_bits<T>(x[i]), b = from_bits<T>(y[i]); z[i] = to_bits<T>(expression); }
BINARY(add, a + b)
BINARY(subtract, __hsub(a, b))
BINARY(multiply, __hmul(a, b))
BINARY(divide, a / b)
BINARY(maximum, __hmax(a, b))
BINARY(minimum, __hmin(a, b))
BINARY(maximum_nan, __hmax_nan(a, b))
BINARY(saturated, __hadd_sat(a, b))

template <typename T>
__global__ void fused(const unsigned short* x, const unsigned short* y, const unsigned short* z, unsigned short* w, int n) {
    AT; w[i] = to_bits(__hfma(from_bits<T>(x[i]), from_bits<T>(y[i]), from_bits<T>(z[i])));
}

__global__ void half_directed(const float* x, unsigned short* down, unsigned short* up, unsigned short* zero, int n) {
    AT; down[i] = to_bits(__float2half_rd(x[i])); up[i] = to_bits(__float2half_ru(x[i])); zero[i] = to_bits(__float2half_rz(x[i]));
}

// One bit per comparison, in the order ==, !=, <, <=, >, >=, then the unordered six.
template <typename T>
__global__ void compare(const unsigned short* x, const unsigned short* y, unsigned short* z, int n) {
    AT; const T a = from_bits<T>(x[i]), b = from_bits<T>(y[i]);
    const bool told[12] = {__heq(a, b), __hne(a, b), __hlt(a, b), __hle(a, b), __hgt(a, b), __hge(a, b),
                           __hequ(a, b), __hneu(a, b), __hltu(a, b), __hleu(a, b), __hgtu(a, b), __hgeu(a, b)};
    unsigned short bits = 0;
    for (int k = 0; k < 12; ++k) bits |= told[k] << k;
    z[i] = bits;
}

// Pairs must do to both halves what the single function does.
__global__ void half_pairs(const unsigned int* x, const unsigned int* y, unsigned int* sum, unsigned int* product, int n) {
    AT; const half2 a = *reinterpret_cast<const half2*>(x + i), b = *reinterpret_cast<const half2*>(y + i);
    *reinterpret_cast<half2*>(sum + i) = __hadd2(a, b);
    *reinterpret_cast<half2*>(product + i) = __hfma2(a, b, __float2half2_rn(-0.0f));
}
