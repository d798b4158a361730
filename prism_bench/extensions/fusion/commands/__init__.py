"""The commands of fusion: fuse, overlap, precision."""
