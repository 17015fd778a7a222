"""Signals that would end ``rebench`` at once end it in order instead; and none while the site is put back."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

_ENDING = ("SIGTERM", "SIGHUP")


class Ended(BaseException):
    """A signal asked for the end; ``signal`` is its number."""

    def __init__(self, number: int) -> None:
        """Hold the number."""
        super().__init__(f"ended by signal {number}")
        self.signal = number


def _raise(number: int, frame: FrameType | None) -> None:
    raise Ended(number)


@contextlib.contextmanager
def ending_in_order() -> Iterator[None]:
    """Within the block TERM and HUP raise :class:`Ended`; one that is ignored stays so, as under ``nohup``."""
    with _handled(_ENDING, _raise):
        yield


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Within the block neither Ctrl-C nor TERM nor HUP has an effect."""
    with _handled(("SIGINT", *_ENDING), signal.SIG_IGN):
        yield


@contextlib.contextmanager
def _handled(names: tuple[str, ...], handler: object) -> Iterator[None]:
    before = {}
    try:
        for name in names:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, handler)  # type: ignore[arg-type]
    except ValueError:
        pass  # only the main thread has signals
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old if old is not None else signal.SIG_DFL)
