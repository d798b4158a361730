extern "C" __global__ void doubled_by_turns(const float* x, float* y, unsigned* arrived, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2.0f * x[i];
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (atomicAdd(arrived, 1u) == gridDim.x - 1) *arrived = 0;
}
