// Nothing at all: what is left is the price of a launch.
extern "C" __global__ void null_kernel() {}
