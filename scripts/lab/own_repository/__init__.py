"""Measurements in git repositories that are made for them: bisect, a user's first ten minutes, a pull request.

trial          a new git repository, and commands of this package in it
histories      a kernel that takes a chosen share longer, and histories of commits in which one slows it
bisecting      scripts/measure_bisect
ten_minutes    scripts/measure_own_repository
pull_request   scripts/measure_pull_request
"""
