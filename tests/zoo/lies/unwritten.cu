extern "C" __global__ void unwritten(const float* x, float* y, int n) {
    for (int i = threadIdx.x; i < n - 1; i += blockDim.x) y[i] = 2.0f * x[i];
}
