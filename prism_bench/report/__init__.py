"""Findings in, text and pictures out: the HTML page, the terminal's tables, the JSON view."""
