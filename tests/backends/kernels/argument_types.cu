// One small kernel for each type of argument; with Wrong it writes one wrong value.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

typedef float real;
using index_t = unsigned int;
enum class Mode { plain, fast };
enum Op { Sum = 3, Largest };
struct Inner { double offset; signed char sign; };
struct Parameters { float scale; int shift; Inner inner; float taps[3]; __nv_bfloat16 narrow; };
struct Plus { __device__ float operator()(float a, float b) const { return a + b; } };
__constant__ float filter[5];
__device__ int bias;
namespace table { __constant__ float weights[4]; }

__device__ index_t place() { return blockIdx.x * blockDim.x + threadIdx.x; }

template <typename T, bool Wrong>
__global__ void scaled(T const* __restrict__ x, T* y, T* z, T alpha, index_t n) {
    const index_t i = place();
    if (i >= n) return;
    y[i] = T(2.0f * float(x[i]) + float(alpha));
    z[i] = T(Wrong && i == 7 ? 2.0f * float(z[i]) + 0.5f : float(z[i]) * -1.0f);
}
template __global__ void scaled<__half, false>(const __half*, __half*, __half*, __half, index_t);

template <bool Signed, bool Wrong>
__global__ void pairs(const unsigned char* x, float* y, unsigned char* z, size_t n) {
    const size_t i = place();
    if (i >= n) return;
    for (int half = 0; half < 2; ++half) {
        const int bits = x[i] >> 4 * half & 15;
        y[2 * i + half] = Signed && bits > 7 ? bits - 16 : bits;
    }
    z[i] = Wrong && i == 7 ? x[i] : x[i] << 4 | x[i] >> 4;
}

template <typename F, bool Wrong>
__global__ void structures(const real* x, real* y, const Parameters p, F combine, index_t n) {
    const index_t i = place();
    if (i >= n) return;
    const real sum = combine(x[i] * p.scale, static_cast<float>(p.inner.offset * p.inner.sign)) + p.shift;
    y[i] = sum + p.taps[Wrong && i == 7 ? 0 : 2] * float(p.narrow);
}

template <bool Wrong>
__global__ void variables(const float* x, float* y, index_t n) {
    const index_t i = place();
    if (i < n) y[i] = x[i] * filter[i % 5] + table::weights[3] + (Wrong && i == 7 ? bias + 1 : bias);
}

template <typename T, int N, Mode M, Op O, bool Wrong>
__global__ void integers(const T* x, T* y, char c, signed char s, unsigned char u, short h, long l, size_t z,
                         unsigned long long w, bool flag, index_t n) {
    const index_t i = place();
    if (i >= n) return;
    const T most = O == Op::Sum ? x[i] + N : max(x[i], T(N));
    y[i] = (M == Mode::fast && flag ? most : T(0)) + c + s + u + h + T(l) + T(z) + T(w) + (Wrong && i == 7);
}
