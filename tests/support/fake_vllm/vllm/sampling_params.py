"""Of vLLM's, what asks for a grammar."""

from types import SimpleNamespace as StructuredOutputsParams  # noqa: F401
