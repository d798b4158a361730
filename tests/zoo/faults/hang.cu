extern "C" __global__ void hang(const float* x, float* y, int n) {
    const volatile float* watched = x;
    while (watched[0] == watched[0]) {}
    y[0] = n;
}
