"""DuckDB: its own database files, and the engine that runs programs over data files."""
