"""Library calls that kernels are compared with: their PyTorch forms, the state they leave, their cache."""
