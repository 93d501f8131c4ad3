"""One run: its config, its identity, the store, locks, execution."""
