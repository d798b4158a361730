#include "tensor_cores/ptx.cuh"
#include "arrays/vector_load.cuh"

// 1 / x, nearly always correctly rounded, for x of ordinary size.
__device__ inline float reciprocal(float x) {
    const float r = reciprocal_fast(x);
    return fmaf(fmaf(-x, r, 1.0f), r, r);
}

// psi(x) for x > 0. Below 6 the argument is raised by 6: 1/x stays apart, as it may dwarf the rest, and 1/(x + 1) to
// 1/(x + 5) are one fraction in c = x + 3. From 6 on the logarithm is far from its zero, so that the hardware's will do.
// Without a branch, so that a thread's four do not wait for one another; x >= LEAST, also infinite.
constexpr float LEAST = 1e-30f;

__device__ inline float psi_of_ordinary(float x) {
    const bool small = x < 6.0f;
    const float z = small ? x + 6.0f : x;
    const float w = reciprocal_fast(fminf(z, 0x1p126f)), v = w * w;
    const float series = v * fmaf(v, fmaf(v, 1.0f / 252, -1.0f / 120), 1.0f / 12);
    const float psi = fmaf(0.69314718f, log2_fast(z), -fmaf(0.5f, w, series));
    const float own = small ? x : 1.0f, c = own + 3.0f, u = c * c;
    const float rest = fmaf(fmaf(5.0f, u, -15.0f), u, 4.0f) * reciprocal(c * (u - 4.0f) * (u - 1.0f));
    return small ? (psi - rest) - reciprocal(own) : psi;
}

__device__ inline float psi_of_positive(float x) { return x < LEAST ? -1.0f / x : psi_of_ordinary(x); }

// The same in double precision, raised to 10 one by one; 1/x, which may dwarf the rest, stays apart.
__device__ inline double psi_of_positive(double x) {
    double reciprocals = 0.0, over = 1.0, first = 0.0;
    if (x < 10.0) first = 1.0 / x, x += 1.0;
    for (; x < 10.0; x += 1.0) reciprocals = fma(reciprocals, x, over), over *= x;
    const double w = 1.0 / x, v = w * w;
    double series = fma(v, 1.0 / 12, -691.0 / 32760);
    series = fma(v, series, 1.0 / 132);
    series = fma(v, series, -1.0 / 240);
    series = fma(v, series, 1.0 / 252);
    series = fma(v, series, -1.0 / 120);
    series = fma(v, series, 1.0 / 12);
    return log(x) - 0.5 * w - v * series - reciprocals / over - first;
}

__device__ inline float cot_of_pi(float x) { return cospif(x) / sinpif(x); }
__device__ inline double cot_of_pi(double x) { return cospi(x) / sinpi(x); }

// NaN at the poles 0, -1, -2 and so on, and at -infinity.
template <class T>
__device__ T psi(T x) {
    if (x > 0) return psi_of_positive(x);
    if (x == floor(x)) return static_cast<T>(__int_as_float(0x7fffffff));
    return psi_of_positive(1 - x) + static_cast<T>(3.141592653589793) * cot_of_pi(-x);
}

struct Psi {
    __device__ __noinline__ float operator()(float x) const { return psi(x); }
};

/// What map_elements takes for four at a time: nearly always all are ordinary.
__device__ inline float4 map4(float4 v, Psi psi) {
    const bool ordinary = v.x >= LEAST && v.y >= LEAST && v.z >= LEAST && v.w >= LEAST;
    if (!ordinary) return make_float4(psi(v.x), psi(v.y), psi(v.z), psi(v.w));
    return make_float4(psi_of_ordinary(v.x), psi_of_ordinary(v.y), psi_of_ordinary(v.z), psi_of_ordinary(v.w));
}

extern "C" __global__ void __launch_bounds__(256) digamma(const float* x, float* y, long long n) {
    map_elements(x, y, n, Psi{});
}

extern "C" __global__ void __launch_bounds__(256) digamma_f64(const double* x, double* y, long long n) {
    const long long i = grid_thread();
    if (i < n) y[i] = psi(x[i]);
}

// table[i] = psi(i); NaN for 0.
extern "C" __global__ void digamma_table(float* table, int entries) {
    const int i = static_cast<int>(grid_thread());
    if (i < entries) table[i] = static_cast<float>(psi(static_cast<double>(i)));
}

// psi of integers by the table; NaN for those that it lacks.
extern "C" __global__ void __launch_bounds__(256)
    digamma_lookup(const int* __restrict__ index, float* __restrict__ y, const float* __restrict__ table, long long n,
                   int entries) {
    const long long at = 4 * grid_thread();
    const auto found = [&](int i) { return __ldg(table + (i > 0 && i < entries ? i : 0)); };
    if (at + 4 <= n) {
        const int4 i = *reinterpret_cast<const int4*>(index + at);
        store4(y + at, make_float4(found(i.x), found(i.y), found(i.z), found(i.w)));
    } else {
        for (long long k = at; k < n; ++k) y[k] = found(index[k]);
    }
}
