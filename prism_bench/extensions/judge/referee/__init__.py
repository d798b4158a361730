"""The referee: machine code launched and timed in a runner process that knows no expected outputs and no verdict.

`Referee` asks from outside, draws the inputs, keeps a clock, and compares; `runner` answers over frames; `Arena` is a
runner's memory with canaries; a `RefereeDevice` is the thin layer over a driver.
"""
