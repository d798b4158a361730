struct Plain {
    __device__ static float sum(float a, float b) { return a + b; }
};

#ifndef CPU_CUDA
struct Flushing {
    __device__ static float sum(float a, float b) {
        float flushed;
        asm("add.ftz.f32 %0, %1, %2;" : "=f"(flushed) : "f"(a), "f"(b));
        return flushed;
    }
};
#endif

template <class Tile>
__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) c[i] = Tile::sum(a[i], b[i]);
}
