#pragma once

#include "arrays/vector_load.cuh"

// alpha a + beta b within 1.5 units in the last place even where the terms cancel: the rounding error of one product is
// added at the end (Jeannerod, Louvet and Muller 2013). An infinite sum has no such error.
template <class T>
struct Combine {
    T alpha, beta;

    __device__ T operator()(T a, T b) const {
        const T product = beta * b;
        const T lost = fma(beta, b, -product);
        const T sum = fma(alpha, a, product);
        return isfinite(sum) ? sum + lost : sum;
    }
};

// factor x, and 0 for a factor of 0 whatever x is.
template <class T>
struct Scale {
    T factor;

    __device__ T operator()(T x) const { return factor == T(0) ? T(0) : factor * x; }
};

template <class F, class... Pairs>
__device__ double2 map_pair(F f, Pairs... v) {
    return make_double2(f(v.x...), f(v.y...));
}

// out[i] = f(in[i]...), two doubles per 16-byte access; arrays that are misaligned differently go singly.
template <class F, class... Others>
__device__ void map_doubles(double* out, long long n, F f, const Others*... in) {
    const Span span = aligned_span(2 * n, reinterpret_cast<const float*>(out), reinterpret_cast<const float*>(in)...);
    const auto pair = [=](const double* p, long long at) {
        return reinterpret_cast<const double2*>(p + span.head / 2)[at];
    };
#pragma unroll 1
    for (long long at = grid_thread(); at < span.vectors; at += grid_threads())
        reinterpret_cast<double2*>(out + span.head / 2)[at] = map_pair(f, pair(in, at)...);
#pragma unroll 1
    for (long long i = grid_thread(); i < span.singles(2 * n) / 2; i += grid_threads()) {
        const long long at = span.single(2 * i) / 2;
        out[at] = f(in[at]...);
    }
}

// out = alpha a + beta b; an array whose factor is 0 is not read. out may be a or b.
__device__ inline void combine(const float* a, const float* b, float* out, float alpha, float beta, long long n) {
    if (beta == 0.0f) map_elements(a, out, n, Scale<float>{alpha});
    else if (alpha == 0.0f) map_elements(b, out, n, Scale<float>{beta});
    else map_pairs(a, b, out, n, Combine<float>{alpha, beta});
}

extern "C" __global__ void axpby(const float* a, const float* b, float* out, float alpha, float beta, long long n) {
    combine(a, b, out, alpha, beta, n);
}

// a = alpha a + beta b.
extern "C" __global__ void axpby_into_first(float* a, const float* b, float alpha, float beta, long long n) {
    combine(a, b, a, alpha, beta, n);
}

// b = alpha a + beta b.
extern "C" __global__ void axpby_into_second(const float* a, float* b, float alpha, float beta, long long n) {
    combine(a, b, b, alpha, beta, n);
}

extern "C" __global__ void axpby_f64(const double* a, const double* b, double* out, double alpha, double beta,
                                     long long n) {
    if (beta == 0.0) map_doubles(out, n, Scale<double>{alpha}, a);
    else if (alpha == 0.0) map_doubles(out, n, Scale<double>{beta}, b);
    else map_doubles(out, n, Combine<double>{alpha, beta}, a, b);
}
