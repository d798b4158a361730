"""Which configuration, form or size to launch: searched, chosen by measured times, kept and looked up again.

Knows nouns, numbers and callables; the workbench measures.
"""
