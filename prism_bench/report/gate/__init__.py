"""What the gate says, for every reader: a terminal, a program, a pull request, a test report, a code view."""
