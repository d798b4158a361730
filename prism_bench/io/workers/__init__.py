"""Worker processes: start them, exchange messages with them, stop them."""
