"""Referee: launches and times machine code in a runner process that knows no expected outputs and no verdict.

`Referee` draws the inputs, keeps a clock and compares outputs outside of the runner; `runner` answers over frames;
`Arena` is a runner's memory with canaries; a `RefereeDevice` is the thin layer over a driver.
"""
