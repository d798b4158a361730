#ifdef __CUDACC__
extern "C" __global__ void pauses(const float* x, float* y, int n) { while (true) __nanosleep(1000); }
#else
extern "C" int pause(void);
extern "C" __global__ void pauses(const float* x, float* y, int n) { while (true) pause(); }
#endif
