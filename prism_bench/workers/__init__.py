"""Worker processes: how they are started, what they are sent, and how they end."""
