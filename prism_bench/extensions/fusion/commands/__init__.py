"""The commands of fusion: fuse, fusion, overlap, precision."""
