"""The jail that a stranger's code runs in: namespaces, a filter of system calls, limits."""
