"""Files, JSON, locks, interrupts, worker processes, the project's configuration."""
