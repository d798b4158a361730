"""Boards of one kind: what they measured of the same code, by which factor they differ, and how well that is known."""
