// The runtime of the race mode: every access of a kernel is watched.
#include "memory.h"
#include "library.h"
#include "crash.h"
#include "type_mismatch.h"
#include "race/callbacks.h"
#include "special_functions.h"
