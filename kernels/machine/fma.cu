// Eight independent chains of fused multiply-adds per thread, in registers: v <- v * factor + step. With factor 1 and
// whole numbers every step is exact, so the result counts the steps that were made.
constexpr int CHAINS = 8;

extern "C" __global__ void __launch_bounds__(128) fma_chains(const float* x, float* y, int n, int rounds, float factor,
                                                             float step) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float chain[CHAINS];
#pragma unroll
    for (int k = 0; k < CHAINS; ++k) chain[k] = x[i] + k;
#pragma unroll 16
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int k = 0; k < CHAINS; ++k) chain[k] = fmaf(chain[k], factor, step);
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < CHAINS; ++k) sum += chain[k];
    y[i] = sum;
}
