#include "launches/virtual_grid.cuh"

#include "work.cuh"
