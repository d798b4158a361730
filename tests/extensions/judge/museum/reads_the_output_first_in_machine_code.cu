// The source of the cubin of this name: nvcc -arch=sm_90 -cubin.
extern "C" __global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n && c[i] != a[i] + b[i]) c[i] = a[i] + b[i];  // nothing is written where an earlier result still is
}
