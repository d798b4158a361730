"""`python -m prism_bench` and `prism-bench` are the command line."""

from prism_bench.io import files


def main() -> None:
    """Run the command line, guarded against signals from before its imports until the interpreter has ended."""
    files.starting()
    try:
        from prism_bench.cli import main as command

        command()
    finally:
        files.closed()


if __name__ == "__main__":
    main()
