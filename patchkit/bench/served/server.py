"""A server of ours: started on a free port, waited for, and ended with all that it started."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from patchkit.bench.loglines import exception_of, last_words, lines_of
from patchkit.runtime.ledger import open_regular
from patchkit.visible import visible

#: Seconds that a server has to end in good order before it is killed.
GRACE = 10.0
#: Seconds between two looks at whether it is ready.
LOOK = 1.0
#: Seconds that it may take to answer when it is asked.
ANSWER = 10.0
#: How often another port is tried, where somebody else took the one that was free.
ATTEMPTS = 3
_TAKEN = ("address already in use", "errno 98", "errno 48")
#: Bytes of the end of a log that are looked through for the reason of an end.
_TAIL = 1 << 18
_KEEPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keeper.py")


class Refused(Exception):
    """There is no server to measure: ``kind`` and message of the failure."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Running(NamedTuple):
    """A server that is ready. ``model`` is what it is asked for; ``ids``: it is vLLM, and gives token ids."""

    url: str
    model: str
    ids: bool


def free_port() -> int:
    """A port of the loopback interface on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(
    command: Callable[[int, tuple[str, ...]], Sequence[str]],
    *,
    model: str,
    log: str,
    cwd: str,
    environ: Mapping[str, str],
    timeout: float,
    tick: Callable[[str], None],
) -> Iterator[Running]:
    """A server that is ready, for the block; whatever happens, nothing of it is left behind it.

    It is known by a name of its own among those of its model, so that another server on the same port, which the system
    allows where both ask for it, is never taken for it.

    Args:
        command: The command line for a port and the model's names.
        model: The model's own name.
        log: The file that takes what it prints.
        cwd: Its working directory.
        environ: Its environment.
        timeout: Seconds until it must be ready.
        tick: Told every second what is under way.

    Raises:
        Refused: ``died``, ``not-ready`` or ``wrong-model``, with its last words.
    """
    until, begun = time.monotonic() + timeout, time.monotonic()
    open(log, "wb").close()
    for attempt in range(ATTEMPTS):
        port, mark = free_port(), f"patchkit-{secrets.token_hex(8)}"
        url = f"http://127.0.0.1:{port}"
        with _kept(command(port, (model, mark)), log, cwd, environ) as process:
            try:
                _wait(process, url, mark, log, until, lambda: tick(f"starting, {time.monotonic() - begun:.0f} s"))
            except Refused as refusal:
                if refusal.kind == "died" and attempt + 1 < ATTEMPTS and _port_was_taken(log):
                    continue
                raise
            yield Running(url, model, True)
            return


@contextmanager
def _kept(command: Sequence[str], log: str, cwd: str, environ: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """The program under :mod:`patchkit.bench.served.keeper`, which ends it when its own input ends."""
    keeper = subprocess.Popen(
        [sys.executable, "-I", _KEEPER, os.path.abspath(log), str(GRACE), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=cwd,
        env=dict(environ),
        start_new_session=True,
    )
    try:
        yield keeper
    finally:
        assert keeper.stdin is not None
        with contextlib.suppress(OSError):
            keeper.stdin.close()
        # Interrupted once more, it is left to end the server by itself; to kill it would leave the server.
        try:
            keeper.wait(GRACE * 3)
        except subprocess.TimeoutExpired:
            keeper.kill()
            keeper.wait()


def _wait(
    process: subprocess.Popen[bytes],
    url: str,
    mark: str,
    log: str,
    until: float,
    tick: Callable[[], None],
) -> None:
    """Wait until ``/health`` answers and ``/v1/models`` has the mark."""
    said = "nothing answered"
    while True:
        if process.poll() is not None:
            raise Refused(
                "died", f"the server ended with status {process.returncode} before it was ready: {words(log)}"
            )
        try:
            if get(url, "/health")[0] == 200:
                names = models(url)
                if mark in names:
                    return
                said = f"another server answered, with the models {', '.join(names) or 'none'}"
        except (OSError, ValueError, http.client.HTTPException) as error:
            said = visible(str(error)) or type(error).__name__
        if time.monotonic() >= until:
            raise Refused("not-ready", f"the server was not ready in time; last: {said}; its log: {words(log)}")
        tick()
        # Asked for rather than slept: a server that ends is noticed at once.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(LOOK, max(0.05, until - time.monotonic())))


def attached(url: str, model: str | None) -> Running:
    """A server that runs already.

    Raises:
        Refused: ``not-ready``: it does not answer; ``wrong-model``: it has not the model that is asked for, or several
            and none is.
    """
    base = url.rstrip("/").removesuffix("/v1")
    try:
        names = models(base)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Refused("not-ready", f"the server at {shown(url)} does not answer /v1/models: {error}") from None
    if model is None and len(names) == 1:
        model = names[0]
    if model is None or model not in names:
        asked = "no engine.model says which to ask for" if model is None else f"{model} is asked for"
        raise Refused("wrong-model", f"the server at {shown(url)} has the models {', '.join(names) or 'none'}; {asked}")
    try:
        status, body = get(base, "/version")
        ids = status == 200 and "version" in json.loads(body)
    except (OSError, ValueError, http.client.HTTPException):
        ids = False
    return Running(base, model, ids)


def models(url: str) -> list[str]:
    """The names of the models that a server has.

    Raises:
        OSError: It does not answer.
        ValueError: Its answer is none.
    """
    status, body = get(url, "/v1/models")
    if status != 200:
        raise ValueError(f"/v1/models answers with status {status}")
    try:
        value: Any = json.loads(body)
        return [str(one["id"]) for one in value["data"]]
    except (ValueError, TypeError, KeyError):
        raise ValueError("/v1/models answers with no list of models") from None


def get(url: str, path: str) -> tuple[int, bytes]:
    """Status and body of a request without one.

    Raises:
        OSError: There is no answer in time.
    """
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "127.0.0.1", parts.port, timeout=ANSWER)
    key = os.environ.get("OPENAI_API_KEY")
    try:
        connection.request(
            "GET", parts.path.rstrip("/") + path, headers={"Authorization": f"Bearer {key}"} if key else {}
        )
        answer = connection.getresponse()
        return answer.status, answer.read(1 << 20)
    finally:
        connection.close()


def shown(url: str) -> str:
    """A URL without a password in it, safe to print."""
    parts = urlsplit(url)
    return visible(parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl())


def words(log: str) -> str:
    """Why a server ended, by the end of its log."""
    with open_regular(log) as file:
        size = file.seek(0, os.SEEK_END)
        said = visible(last_words(lines_of(file, max(0, size - _TAIL))))
    return f"{said} (all of it: {log})" if said else f"it printed nothing ({log})"


def exception(log: str) -> str | None:
    """The last exception that a server's log tells."""
    with open_regular(log) as file:
        size = file.seek(0, os.SEEK_END)
        said = exception_of(lines_of(file, max(0, size - _TAIL)))
    return None if said is None else visible(said)


def _port_was_taken(log: str) -> bool:
    with open_regular(log) as file:
        size = file.seek(0, os.SEEK_END)
        text = "\n".join(lines_of(file, max(0, size - _TAIL))).lower()
    return any(part in text for part in _TAKEN)
