__device__ unsigned launches;

extern "C" __global__ void nearly_doubled(const float* x, float* y, int n) {
    const unsigned turn = launches;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = __uint_as_float(__float_as_uint(2.0f * x[i]) ^ (turn & 1));
    if (threadIdx.x == 0) launches = turn + 1;
}
