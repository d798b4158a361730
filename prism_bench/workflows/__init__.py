"""Procedures behind commands: profile, tune, compile and compare, trace, find the commit of a change."""
