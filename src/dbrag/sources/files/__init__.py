"""Data files: found, read with their types guessed, and kept as Parquet."""
