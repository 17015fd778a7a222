"""The files that people write: types, loading, JSON Schema."""
