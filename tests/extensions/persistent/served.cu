#include "../../kernels/include/virtual_grid.cuh"

#include "work.cuh"
