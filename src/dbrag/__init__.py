"""dbrag."""
