// The source of the cubin of this name: nvcc -arch=sm_90 -rdc=true -cubin.
extern "C" __global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
    if (i == 0) attack<<<1, 256>>>(a, b, c, n);
}
