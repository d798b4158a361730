extern "C" __global__ void doubled_in_place(float* x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] *= 2.0f;
}
