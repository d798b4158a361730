// The runtime of the fast mode.
#include "memory.h"
#include "library.h"
#include "crash.h"
#include "no_observer.h"
#include "special_functions.h"
