// The runtime of the address mode. It is not itself instrumented: only kernels are.
#include "sanitized_memory.h"
#include "library.h"
#include "no_observer.h"
#include "special_functions.h"
