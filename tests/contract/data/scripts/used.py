"""Use the documented names as a program does: load records, compare them, show results."""

import prism_bench

frame = prism_bench.load("a.json.gz")
print(type(frame).__name__, frame.shape)
print(*frame.columns)
print(frame.iloc[0].to_dict())
