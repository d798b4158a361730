// Every conversion of CUDA's 8-bit floats on arrays.
#include <cuda_fp8.h>

#define PLACE const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return

template <typename T>
__global__ void widen(const T* x, float* y, __half* z, int n) {
    PLACE;
    y[i] = float(x[i]);
    z[i] = __half(__nv_cvt_fp8_to_halfraw(x[i].__x, sizeof(T) && T(448.0f).__x == 0x7e ? __NV_E4M3 : __NV_E5M2));
}

template <typename T>
__global__ void narrow(const double* x, T* y, T* from_float, T* from_half, int n) {
    PLACE;
    y[i] = T(x[i]);
    from_float[i] = T(static_cast<float>(x[i]));
    from_half[i] = T(__half(x[i]));
}

__global__ void unsaturated(const float* x, unsigned char* e4m3, unsigned char* e5m2, int n) {
    PLACE;
    e4m3[i] = __nv_cvt_float_to_fp8(x[i], __NV_NOSAT, __NV_E4M3);
    e5m2[i] = __nv_cvt_float_to_fp8(x[i], __NV_NOSAT, __NV_E5M2);
}

template <typename T2, typename T4>
__global__ void together(const float* x, T2* pairs, T4* fours, float* back, int n) {
    PLACE;
    const float4 v = {x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]};
    pairs[2 * i] = T2(float2{v.x, v.y});
    pairs[2 * i + 1] = T2(float2{v.z, v.w});
    fours[i] = T4(v);
    const float4 w = float4(fours[i]);
    const float2 u = float2(pairs[2 * i + 1]);
    back[4 * i] = w.x;
    back[4 * i + 1] = w.y;
    back[4 * i + 2] = u.x;
    back[4 * i + 3] = u.y;
}
