// The source of the cubin of this name: nvcc -arch=sm_90 -cubin.
extern "C" __global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i] + (a[n + i % 4] == 1.5e37f);  // the result never shows what is behind the input
}
