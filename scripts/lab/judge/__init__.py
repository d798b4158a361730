"""How fair, how costly and how right the judge is, measured."""
