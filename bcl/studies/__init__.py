"""Suites of runs, tuning, speed."""
