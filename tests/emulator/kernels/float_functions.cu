// One floating-point intrinsic per kernel, element by element.
#define AT const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return
#define ONE(name, T, R, expression) __global__ void name(const T* x, R* y, int n) { AT; const T a = x[i]; y[i] = expression; }
#define TWO(name, T, R, expression) \
    __global__ void name(const T* x, const T* y, R* z, int n) { AT; const T a = x[i], b = y[i]; z[i] = expression; }
#define THREE(name, T, R, expression) \
    __global__ void name(const T* x, const T* y, const T* z, R* w, int n) { AT; const T a = x[i], b = y[i], c = z[i]; w[i] = expression; }
#define ROUNDED(prefix, T, mode) \
    TWO(prefix##add_##mode, T, T, __##prefix##add_##mode(a, b)) \
    TWO(prefix##sub_##mode, T, T, __##prefix##sub_##mode(a, b)) \
    TWO(prefix##mul_##mode, T, T, __##prefix##mul_##mode(a, b)) \
    TWO(prefix##div_##mode, T, T, __##prefix##div_##mode(a, b))

ROUNDED(f, float, rn)
ROUNDED(f, float, rz)
ROUNDED(f, float, ru)
ROUNDED(f, float, rd)
ROUNDED(d, double, rn)
ROUNDED(d, double, rz)
ROUNDED(d, double, ru)
ROUNDED(d, double, rd)
THREE(fma_rn, float, float, __fmaf_rn(a, b, c))
THREE(fma_rz, float, float, __fmaf_rz(a, b, c))
THREE(fma_ru, float, float, __fmaf_ru(a, b, c))
THREE(fma_rd, float, float, __fmaf_rd(a, b, c))

ONE(to_int_rn, float, int, __float2int_rn(a))
ONE(to_int_rz, float, int, __float2int_rz(a))
ONE(to_int_ru, float, int, __float2int_ru(a))
ONE(to_int_rd, float, int, __float2int_rd(a))
ONE(to_uint_rz, float, unsigned int, __float2uint_rz(a))
ONE(to_ll_rz, float, long long, __float2ll_rz(a))
ONE(double_to_int_rz, double, int, __double2int_rz(a))
ONE(from_int_rn, int, float, __int2float_rn(a))
ONE(from_int_rz, int, float, __int2float_rz(a))
ONE(from_int_ru, int, float, __int2float_ru(a))
ONE(from_int_rd, int, float, __int2float_rd(a))
ONE(to_float_rz, double, float, __double2float_rz(a))
ONE(to_float_ru, double, float, __double2float_ru(a))

ONE(fast_exp, float, float, __expf(a))
ONE(fast_exp10, float, float, __exp10f(a))
ONE(fast_log, float, float, __logf(a))
ONE(fast_log2, float, float, __log2f(a))
ONE(fast_log10, float, float, __log10f(a))
ONE(fast_sin, float, float, __sinf(a))
ONE(fast_cos, float, float, __cosf(a))
ONE(fast_tan, float, float, __tanf(a))
TWO(fast_pow, float, float, __powf(a, b))
TWO(fast_divide, float, float, __fdividef(a, b))
ONE(reciprocal_root, float, float, rsqrtf(a))
ONE(rounded_reciprocal_root, float, float, __frsqrt_rn(a))
ONE(reciprocal_cube_root, float, float, rcbrtf(a))
ONE(sine_of_pi, float, float, sinpif(a))
ONE(cosine_of_pi, float, float, cospif(a))
ONE(error, float, float, erff(a))
ONE(complementary_error, float, float, erfcf(a))
ONE(scaled_complementary_error, double, double, erfcx(a))
ONE(inverse_error, double, double, erfinv(a))
ONE(inverse_complementary_error, double, double, erfcinv(a))
ONE(normal, float, float, normcdff(a))
ONE(inverse_normal, double, double, normcdfinv(a))
ONE(bessel_i0, double, double, cyl_bessel_i0(a))
ONE(bessel_i1, double, double, cyl_bessel_i1(a))
ONE(log_gamma, float, float, lgammaf(a))
ONE(saturated, float, float, __saturatef(a))
TWO(larger, float, float, fmaxf(a, b))
TWO(larger_overload, float, float, max(a, b))
TWO(smaller_overload, float, float, min(a, b))
THREE(norm3, float, float, norm3df(a, b, c))
TWO(reciprocal_hypot, float, float, rhypotf(a, b))

__global__ void sine_and_cosine(const float* x, float* s, float* c, int n) { AT; __sincosf(x[i], s + i, c + i); }
__global__ void sine_and_cosine_of_pi(const float* x, float* s, float* c, int n) { AT; sincospif(x[i], s + i, c + i); }
__global__ void cached_accesses(const float4* x, float4* y, int n) {
    AT;
    __stcs(y + i, __ldg(x + i));
    const float4 v = __ldcs(x + i), w = __ldcg(x + i);
    __stcg(y + i, make_float4(v.y, w.x, v.w, w.z));
}
