"""The catalogue that comes with the package: read once by a test process, for all tests that only look at it."""

from prism_bench.catalogue import built_in

CATALOGUE = built_in()
