"""Experiments: recipes run in arms, judged, reported; and the instruments beside them."""
