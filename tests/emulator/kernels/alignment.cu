// Each access is at byte `shift` of a buffer or of shared memory: right where that is a multiple of what the type needs.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

template <typename V>
__global__ void loads(const char* x, char* y, int shift) {
    const V value = *reinterpret_cast<const V*>(x + shift);  // ACCESS
    *reinterpret_cast<V*>(y) = value;
}

template <typename V>
__global__ void caches(const char* x, char* y, int shift) {
    *reinterpret_cast<V*>(y) = __ldg(reinterpret_cast<const V*>(x + shift));  // ACCESS
}

template <typename V>
__global__ void stores(const char* x, char* y, int shift) {
    const V value = *reinterpret_cast<const V*>(x);
    *reinterpret_cast<V*>(y + shift) = value;  // ACCESS
}

template <typename V>
__global__ void shares(const char* x, char* y, int shift) {
    extern __shared__ __align__(16) char tile[];
    for (int i = threadIdx.x; i < 64; i += blockDim.x) tile[i] = x[i];
    __syncthreads();
    *reinterpret_cast<V*>(y) = *reinterpret_cast<const V*>(tile + shift);  // ACCESS
}

__global__ void moves(const char* x, char* y, int shift) {
    *reinterpret_cast<float4*>(y + shift) = *reinterpret_cast<const float4*>(x + shift);  // ACCESS
}

// One member of a vector is read, and the others never are.
__global__ void reads_a_member(const char* x, char* y, int shift) {
    *reinterpret_cast<float*>(y) = reinterpret_cast<const float4*>(x + shift)->y;  // ACCESS
}

template <int Bytes>
__global__ void copies(const char* x, char* y, int shift) {
    extern __shared__ __align__(16) char tile[];
    __pipeline_memcpy_async(tile, x + shift, Bytes);  // ACCESS
    __pipeline_commit();
    __pipeline_wait_prior(0);
    for (int i = 0; i < Bytes; ++i) y[i] = tile[i];
}

__global__ void counts(const char* x, char* y, int shift) {
    atomicAdd(reinterpret_cast<unsigned int*>(y + shift), static_cast<unsigned int>(x[0]));  // ACCESS
}

template <typename V>
__global__ void keeps(const char* x, char* y, int shift) {
    char own[64];
    for (int i = 0; i < 64; ++i) own[i] = x[i];
    *reinterpret_cast<V*>(y) = *reinterpret_cast<const V*>(own + shift);  // ACCESS
}
