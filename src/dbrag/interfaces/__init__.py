"""The ways in from outside: the command line."""
