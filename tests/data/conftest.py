"""An empty cache for tests of data."""

from data_makers import cache_root

__all__ = ["cache_root"]
