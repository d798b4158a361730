#include "ksg.cuh"
