extern "C" __global__ void doubled(const float* x, float* y, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2.0f * x[i];
}
