// y = 2 x of 256 numbers. FAULT takes the address that is no multiple of what its type needs: a GPU ends the launch.

#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

extern "C" __global__ void doubled(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}

// The numbers before `first`, and those after the last whole vector of `width` numbers.
__device__ void write_rest(const float* x, float* y, int n, int first, int width) {
    if (threadIdx.x > 0) return;
    for (int i = 0; i < first; ++i) y[i] = 2.0f * x[i];
    for (int i = first + (n - first) / width * width; i < n; ++i) y[i] = 2.0f * x[i];
}

__device__ void write(float* y, int i, float4 v) {
    y[i] = 2.0f * v.x;
    y[i + 1] = 2.0f * v.y;
    y[i + 2] = 2.0f * v.z;
    y[i + 3] = 2.0f * v.w;
}

template <bool FAULT>
__global__ void float4_global(const float* x, float* y, int n) {
    const int first = FAULT ? 1 : 4, i = first + 4 * threadIdx.x;
    if (i + 4 <= n) write(y, i, *reinterpret_cast<const float4*>(x + i));
    write_rest(x, y, n, first, 4);
}

template <bool FAULT>
__global__ void float2_global(const float* x, float* y, int n) {
    const int first = FAULT ? 1 : 2, i = first + 2 * threadIdx.x;
    if (i + 2 <= n) *reinterpret_cast<float2*>(y + i) = make_float2(2.0f * x[i], 2.0f * x[i + 1]);
    write_rest(x, y, n, first, 2);
}

template <bool FAULT>
__global__ void int4_global(const float* x, float* y, int n) {
    const int first = FAULT ? 2 : 4, i = first + 4 * threadIdx.x;
    if (i + 4 <= n) {
        const int4 v = *reinterpret_cast<const int4*>(x + i);
        write(y, i, make_float4(__int_as_float(v.x), __int_as_float(v.y), __int_as_float(v.z), __int_as_float(v.w)));
    }
    write_rest(x, y, n, first, 4);
}

template <bool FAULT>
__global__ void double2_shared(const float* x, float* y, int n) {
    __shared__ __align__(16) double tile[256];
    for (int k = threadIdx.x; k < n; k += blockDim.x) tile[k] = x[k];
    __syncthreads();
    const int first = FAULT ? 1 : 2, i = first + 2 * threadIdx.x;
    if (i + 2 <= n) {
        const double2 v = *reinterpret_cast<const double2*>(tile + i);
        y[i] = 2.0f * static_cast<float>(v.x);
        y[i + 1] = 2.0f * static_cast<float>(v.y);
    }
    write_rest(x, y, n, first, 2);
}

template <bool FAULT>
__global__ void float4_dynamic(const float* x, float* y, int n) {
    extern __shared__ __align__(16) float dynamic[];
    for (int k = threadIdx.x; k < n; k += blockDim.x) dynamic[k] = x[k];
    __syncthreads();
    const int first = FAULT ? 1 : 4, i = first + 4 * threadIdx.x;
    if (i + 4 <= n) write(y, i, *reinterpret_cast<const float4*>(dynamic + i));
    write_rest(x, y, n, first, 4);
}

template <bool FAULT>
__global__ void half2_shared(const float* x, float* y, int n) {
    __shared__ __align__(4) __half tile[258];
    const int i = threadIdx.x, place = (FAULT ? 1 : 2) + 2 * (i / 2);
    tile[place + i % 2] = __float2half(x[i]);
    __syncthreads();
    const __half2 pair = *reinterpret_cast<const __half2*>(tile + place);
    y[i] = 2.0f * __half2float(i % 2 ? __high2half(pair) : __low2half(pair));
}

template <bool FAULT>
__global__ void float4_local(const float* x, float* y, int n) {
    __align__(16) float own[12];
    const int i = 4 * threadIdx.x, first = 4 * (n / 256) - FAULT;  // 4 or 3, which the compiler does not know
    for (int k = 0; k < 4; ++k) own[first + k] = x[i + k];
    write(y, i, *reinterpret_cast<const float4*>(own + first));
}

template <bool FAULT>
__global__ void cp_async(const float* x, float* y, int n) {
    __shared__ __align__(16) float shifted[260];
    float* const tile = shifted + (FAULT ? 1 : 4);
    const int i = 4 * threadIdx.x;
    __pipeline_memcpy_async(tile + i, x + i, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    for (int k = 0; k < 4; ++k) y[i + k] = 2.0f * tile[i + k];
}

// The product of the numbers, as a matrix of 16 x 16, with twice the identity.
__device__ void multiply(const float* x, float* y, int shift, int stride) {
    using namespace nvcuda;
    __shared__ __align__(32) __half left[16 * 24 + 16], right[256];
    for (int k = threadIdx.x; k < 256; k += 32) {
        left[shift + k / 16 * stride + k % 16] = __float2half(x[k]);
        right[k] = __float2half(k % 17 == 0 ? 2.0f : 0.0f);
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::load_matrix_sync(a, left + shift, stride);
    wmma::load_matrix_sync(b, right, 16);
    wmma::fill_fragment(c, 0.0f);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(y, c, 16, wmma::mem_row_major);
}

template <bool FAULT>
__global__ void wmma_pointer(const float* x, float* y, int n) {
    multiply(x, y, FAULT ? 1 : 16, 24);
}

template <bool FAULT>
__global__ void wmma_stride(const float* x, float* y, int n) {
    multiply(x, y, 0, FAULT ? 17 : 24);
}
