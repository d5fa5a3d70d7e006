"""Reasoning: selection, programs, repair, votes, evidence."""
