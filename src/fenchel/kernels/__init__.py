"""All numba code, and nothing else. Imported only when a solve needs it."""
