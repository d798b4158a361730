"""`python -m prism_bench` is the command line."""

from prism_bench.cli import main

if __name__ == "__main__":
    main()
