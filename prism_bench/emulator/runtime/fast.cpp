// The runtime of the fast mode.
#include "../include/cuda_on_cpu/interface.h"
#include "memory.h"
#include "library.h"
#include "no_observer.h"
