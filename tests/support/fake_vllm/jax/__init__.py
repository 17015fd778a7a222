"""Of jax, what tells of compilations."""

from jax import monitoring  # noqa: F401
