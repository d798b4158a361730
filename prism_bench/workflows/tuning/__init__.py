"""The configuration, form or size to launch: searched, chosen by measured times, kept and looked up again.

This package only gets numbers and callables; the workbench measures.
"""
