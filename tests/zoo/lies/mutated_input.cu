extern "C" __global__ void mutated_input(float* x, float* y, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] = 2.0f * x[i];
}
