extern "C" __global__ void does_not_compile(const float* x, float* y, int n) {
    y[0] = undeclared_name;
}
