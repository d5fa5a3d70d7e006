"""Which tables a question needs: coarse ranking, joins, and the evidence for each."""
