extern "C" __global__ void planted_nan(const float* x, float* y, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = i == 7 ? nanf("") : 2.0f * x[i];
}
