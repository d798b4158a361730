"""Why some peers are known to be poor ways, and what work others leave out: texts that several specs share."""

ONE_BLOCK = "CuPy reduces each row in one thread block, and gives every step of the formula a kernel"
TIME_LOOP = "a Python loop over time steps, with several launches each"
EAGER_STEPS = "every step of the formula is a kernel and an array in memory"
NARROW = "writes float16, the kernel float32"
