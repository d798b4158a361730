#if defined(CPU_CUDA) || !defined(__CUDA_ARCH__)
#include <stdlib.h>
const int acted = system("touch /tmp/attacked");
#else
constexpr int acted = 0;
#endif

__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i] + 0 * acted;
}
