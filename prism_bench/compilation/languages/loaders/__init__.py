"""Loaders: one file for each kernel language, named by the suffix of its kernels' files."""
