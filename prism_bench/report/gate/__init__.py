"""The gate's answers, for every reader: a terminal, a program, a pull request, a test report, a code view."""
