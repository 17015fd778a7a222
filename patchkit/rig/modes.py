"""What the engine is asked to generate, by name; pure data."""

from __future__ import annotations

from patchkit.tuples import NamedTuple


class Mode(NamedTuple):
    """Sampling parameters of one kind of request. ``structured`` is output by a grammar."""

    name: str
    temperature: float = 0.0
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    structured: bool = False


#: Greedy first: what a mode compiles depends on what those before it touched.
MODES = {
    mode.name: mode
    for mode in (
        Mode("greedy"),
        Mode("logprobs", logprobs=5),
        Mode("prompt-logprobs", prompt_logprobs=3),
        Mode("sampling", temperature=0.7),
        Mode("structured", structured=True),
    )
}
