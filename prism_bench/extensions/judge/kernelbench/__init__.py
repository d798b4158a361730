"""Problems of KernelBench as tasks of the judge: `Model`, `get_inputs` and `get_init_inputs`, read in the jail."""
