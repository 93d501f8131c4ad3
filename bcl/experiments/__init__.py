"""A run, many runs, the run store, tuning."""
