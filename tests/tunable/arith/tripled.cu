// y[i] = 3 x[i] for i < n, by a 1-D grid of any size.
extern "C" __global__ void tripled(const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 3.0f * x[i];
}
