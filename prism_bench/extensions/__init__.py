"""Extensions: packages that add commands, site pages and checks to the core, which works without them."""
