"""Tables, columns, keys and profiles of sources, and the graph of their joins."""
