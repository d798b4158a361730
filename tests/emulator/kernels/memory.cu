// Shared memory, constants, atomics, asynchronous copies, vector types: what a kernel finds in memory.
#include <cuda_pipeline.h>

__constant__ float weights[4];
__device__ unsigned int visits;
__device__ int table[3] = {5, 6, 7};

__global__ void weighted(const float* x, float* y) {
    y[threadIdx.x] = x[threadIdx.x] * weights[threadIdx.x % 4];
    atomicAdd(&visits, 1u);
}

template <typename T, int N>
__global__ void two_dynamic_arrays(T* y) {
    extern __shared__ __align__(16) unsigned char bytes[];
    T* const first = reinterpret_cast<T*>(bytes);
    T* const second = first + N;
    first[threadIdx.x] = static_cast<T>(threadIdx.x);
    second[threadIdx.x] = static_cast<T>(2 * threadIdx.x);
    __syncthreads();
    y[threadIdx.x] = first[N - 1 - threadIdx.x] + second[N - 1 - threadIdx.x];
}

__global__ void rows_of_dynamic_memory(float* y) {
    extern __shared__ float rows[][8];
    rows[threadIdx.x / 8][threadIdx.x % 8] = threadIdx.x;
    __syncthreads();
    y[threadIdx.x] = rows[threadIdx.x % 8][threadIdx.x / 8];
}

// What a kernel reads from shared memory that it never wrote, static and dynamic.
template <typename T>
__global__ void unwritten(T* y) {
    __shared__ T fixed[32];
    extern __shared__ char tile[];
    if (blockIdx.x) fixed[threadIdx.x] = 0;  // of one that nothing writes, the compiler knows that it is 0
    y[threadIdx.x] = fixed[threadIdx.x];
    y[32 + threadIdx.x] = reinterpret_cast<T*>(tile)[threadIdx.x];
}

// Each block must find its shared memory unwritten, and not what the block before it left.
template <int N>
__global__ void leftovers(int* y) {
    __shared__ float fixed[N];
    extern __shared__ float tile[];
    y[blockIdx.x * blockDim.x + threadIdx.x] = (fixed[threadIdx.x] != fixed[threadIdx.x]) + 2 * (tile[threadIdx.x] != tile[threadIdx.x]);
    fixed[threadIdx.x] = tile[threadIdx.x] = 1;
}

#define ATOMIC(name, T, call) __global__ void name(T* a, const T* x, T* old) { old[threadIdx.x] = call(a, x[threadIdx.x]); }
ATOMIC(add_int, int, atomicAdd)
ATOMIC(add_float, float, atomicAdd)
ATOMIC(add_double, double, atomicAdd)
ATOMIC(sub_int, int, atomicSub)
ATOMIC(min_int, int, atomicMin)
ATOMIC(max_unsigned, unsigned int, atomicMax)
ATOMIC(and_unsigned, unsigned int, atomicAnd)
ATOMIC(or_unsigned, unsigned int, atomicOr)
ATOMIC(xor_unsigned, unsigned int, atomicXor)
ATOMIC(exchange, int, atomicExch)
ATOMIC(wrap_up, unsigned int, atomicInc)
ATOMIC(wrap_down, unsigned int, atomicDec)

__global__ void maximum_by_swap(float* a, const float* x, float* old) {
    int* const bits = reinterpret_cast<int*>(a);
    int seen = *reinterpret_cast<volatile int*>(bits), expected;
    do {
        expected = seen;
        seen = atomicCAS(bits, expected, __float_as_int(fmaxf(x[threadIdx.x], __int_as_float(expected))));
    } while (seen != expected);
    old[threadIdx.x] = 0;
}

// Two stages in flight: the wait lets the newer one pending.
__global__ void staged(const float4* x, float4* y, int stages) {
    __shared__ float4 buffer[2][32];
    __pipeline_memcpy_async(&buffer[0][threadIdx.x], &x[threadIdx.x], 16);
    __pipeline_commit();
    for (int s = 0; s < stages; ++s) {
        if (s + 1 < stages) __pipeline_memcpy_async(&buffer[(s + 1) % 2][threadIdx.x], &x[(s + 1) * 32 + threadIdx.x], 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        y[s * 32 + threadIdx.x] = buffer[s % 2][31 - threadIdx.x];
        __syncthreads();
    }
}

__global__ void waits_for_too_few(const float* x, float* y) {
    __shared__ float buffer[32];
    __pipeline_memcpy_async(&buffer[threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    y[threadIdx.x] = buffer[threadIdx.x];
}

__global__ void zero_filled(const float2* x, float2* y) {
    __shared__ float2 buffer[32];
    __pipeline_memcpy_async(&buffer[threadIdx.x], &x[threadIdx.x], 8, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    y[threadIdx.x] = buffer[threadIdx.x];
}

#define SIZE_AND_ALIGNMENT(T) sizeof(T), alignof(T)
__global__ void vector_types(int* y) {
    const int told[] = {SIZE_AND_ALIGNMENT(char3), SIZE_AND_ALIGNMENT(uchar4), SIZE_AND_ALIGNMENT(short2), SIZE_AND_ALIGNMENT(short4),
                        SIZE_AND_ALIGNMENT(int2), SIZE_AND_ALIGNMENT(int3), SIZE_AND_ALIGNMENT(uint4), SIZE_AND_ALIGNMENT(longlong2),
                        SIZE_AND_ALIGNMENT(float2), SIZE_AND_ALIGNMENT(float3), SIZE_AND_ALIGNMENT(float4), SIZE_AND_ALIGNMENT(double2),
                        SIZE_AND_ALIGNMENT(double4)};
    for (int i = 0; i < 26; ++i) y[i] = told[i];
}

struct Shape { int rows; float scale; };
__global__ void by_value(Shape shape, float* y) { y[threadIdx.x] = shape.rows * shape.scale; }
__global__ void every_kind(bool flag, signed char a, unsigned short b, long long c, double d, const double* p, float2* z) {
    z[0] = make_float2(flag ? a + b : 0, static_cast<float>(c + d + p[0]));
}
