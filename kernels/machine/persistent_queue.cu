#include "virtual_grid.cuh"

#include "queue_work.cuh"
