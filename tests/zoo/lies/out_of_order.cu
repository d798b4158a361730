extern "C" __global__ void out_of_order(const float* x, float* y, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[(i + 1) % n] = 2.0f * x[i];
}
