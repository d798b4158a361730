#include "neighbours/ksg.cuh"
