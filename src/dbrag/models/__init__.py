"""Chat models, encoders and their weights, behind the seams of ``base``."""
