// Slow: each thread works on 1,024 elements in a row, so that the threads of a warp never share a line of the cache.
__global__ void naive(const float* x, float* y, long long n) {
    const long long first = (blockIdx.x * (long long)blockDim.x + threadIdx.x) * 1024;
    for (long long i = first; i < first + 1024 && i < n; ++i) y[i] = expf(x[i]);
}

// Fast: each thread works on one vector of four elements, the last ones on single elements.
__global__ void good(const float* x, float* y, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (4 * i + 3 < n) {
        const float4 vx = reinterpret_cast<const float4*>(x)[i];
        reinterpret_cast<float4*>(y)[i] = make_float4(expf(vx.x), expf(vx.y), expf(vx.z), expf(vx.w));
    } else {
        for (long long j = 4 * i; j < n; ++j) y[j] = expf(x[j]);
    }
}
