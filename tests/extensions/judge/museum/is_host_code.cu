#include <cstdlib>
struct Before { Before() { std::system("touch /tmp/attacked"); } };
static Before before;
__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
