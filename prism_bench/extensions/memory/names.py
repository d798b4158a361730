"""The names of the allocators that can be compared; the first is what they are compared with."""

ALLOCATORS = ("cupy", "size_class", "async", "none", "rmm")
