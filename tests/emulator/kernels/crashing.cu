// Kernels that end their process, or would on the way to a wrong result.
__constant__ float factor;
__device__ int launches;
__global__ void scaled(const float* x, float* y) {
    y[threadIdx.x] = x[threadIdx.x] * factor;
    if (threadIdx.x == 0) launches += 1;
}
__global__ void added(const float* x, float* y) { y[threadIdx.x] += x[threadIdx.x]; }
__global__ void crashes(int* y) { *reinterpret_cast<int*>(8ull * threadIdx.x) = 1; }
__global__ void overflows_its_stack(int* y) {
    volatile char local[400000];
    for (int i = 0; i < 400000; ++i) local[i] = i;
    y[0] = local[7];
}
__global__ void divides(int* y) { y[0] = 7 / y[1]; }
__global__ void overflows(int* y) { y[threadIdx.x] = 0x7fffffff + static_cast<int>(threadIdx.x); }
