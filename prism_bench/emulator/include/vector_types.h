// All of it is there before the first line of a kernel.
#pragma once
