"""The index of a set of sources: table summaries, rows, values, and the manifest over them."""
