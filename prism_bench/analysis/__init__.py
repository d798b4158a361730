"""Records in, findings out: derived values, roofline, budgets and what a run has to say. Nothing here measures."""
