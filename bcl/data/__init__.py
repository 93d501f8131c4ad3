"""Data sets on disk: cache, fetch, import, verify, formats. Knows no tasks."""
