"""Guard, limits and running of statements: nothing but reading, nothing without end."""
