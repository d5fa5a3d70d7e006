"""Other people's ways, so that a figure always has something to stand beside."""
