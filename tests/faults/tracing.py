"""The system calls of a real process that change files, seen from outside, and stopped or failed there: ``ptrace``.

Linux on x86_64 and aarch64, through ctypes. Numbers of the calls: the kernel's ``asm/unistd.h``; the rest: ptrace(2).
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

TRACEME, SYSCALL, POKEUSER, SETOPTIONS = 0, 24, 6, 0x4200
GETREGSET, SETREGSET, GET_SYSCALL_INFO = 0x4204, 0x4205, 0x420E
PRSTATUS, ARM_SYSTEM_CALL = 1, 0x404
OPTIONS = 1 | 2 | 4 | 8 | 16 | 0x100000  # sysgood, fork, vfork, clone, exec, exitkill
WALL = 0x40000000
REFUSED = 77
"""The status of a child that may not be traced."""

#: By name: where the path is (``p``: an argument, relative to the working directory; ``a``: relative to the descriptor
#: before it; ``f``: a descriptor) and which argument holds it; the numbers on x86_64 and aarch64.
_CALLS: dict[str, tuple[str, int, int | None, int | None]] = {
    "open": ("p", 0, 2, None),
    "creat": ("p", 0, 85, None),
    "openat": ("a", 1, 257, 56),
    "openat2": ("a", 1, 437, 437),
    "write": ("f", 0, 1, 64),
    "writev": ("f", 0, 20, 66),
    "pwrite64": ("f", 0, 18, 68),
    "pwritev": ("f", 0, 296, 70),
    "sendfile": ("f", 0, 40, 71),
    "copy_file_range": ("f", 2, 326, 285),
    "fallocate": ("f", 0, 285, 47),
    "truncate": ("p", 0, 76, 45),
    "ftruncate": ("f", 0, 77, 46),
    "fsync": ("f", 0, 74, 82),
    "fdatasync": ("f", 0, 75, 83),
    "rename": ("p", 1, 82, None),
    "renameat": ("a", 3, 264, 38),
    "renameat2": ("a", 3, 316, 276),
    "link": ("p", 1, 86, None),
    "linkat": ("a", 3, 265, 37),
    "symlink": ("p", 1, 88, None),
    "symlinkat": ("a", 2, 266, 36),
    "unlink": ("p", 0, 87, None),
    "unlinkat": ("a", 1, 263, 35),
    "mkdir": ("p", 0, 83, None),
    "mkdirat": ("a", 1, 258, 34),
    "rmdir": ("p", 0, 84, None),
    "mknod": ("p", 0, 133, None),
    "mknodat": ("a", 1, 259, 33),
    "chmod": ("p", 0, 90, None),
    "fchmod": ("f", 0, 91, 52),
    "fchmodat": ("a", 1, 268, 53),
    "fchmodat2": ("a", 1, 452, 452),
    "chown": ("p", 0, 92, None),
    "lchown": ("p", 0, 94, None),
    "fchown": ("f", 0, 93, 55),
    "fchownat": ("a", 1, 260, 54),
    "utime": ("p", 0, 132, None),
    "utimes": ("p", 0, 235, None),
    "futimesat": ("a", 1, 261, None),
    "utimensat": ("a", 1, 280, 88),
    "setxattr": ("p", 0, 188, 5),
    "lsetxattr": ("p", 0, 189, 6),
    "fsetxattr": ("f", 0, 190, 7),
    "removexattr": ("p", 0, 197, 14),
    "lremovexattr": ("p", 0, 198, 15),
    "fremovexattr": ("f", 0, 199, 16),
}
_FLAGS = {"open": 1, "openat": 2}
_ARCHITECTURES = {"x86_64": 2, "aarch64": 3}
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class Call(NamedTuple):
    """One system call that would change a file: its name, the file, and for ``write`` what is written."""

    name: str
    path: str
    data: bytes


class Ended(NamedTuple):
    """How a traced process ended, and the calls that it made."""

    status: int
    calls: list[Call]


Decide = Callable[[Call], "int | None"]
"""Asked at the entry of every call: None lets it go on, 0 kills the process there, an errno makes it fail with that."""


def unable() -> str | None:
    """Why nothing can be traced here; None: it can be."""
    if sys.platform != "linux" or platform.machine() not in _ARCHITECTURES:
        return f"no ptrace driver for {sys.platform} on {platform.machine()}"
    child = os.fork()
    if child == 0:
        os._exit(REFUSED if _libc.ptrace(TRACEME, 0, None, None) else 0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        return "this system permits no ptrace (PTRACE_TRACEME is refused)"
    return None


def _ptrace(request: int, pid: int, address: int = 0, data: int = 0) -> int:
    ctypes.set_errno(0)
    result = int(_libc.ptrace(request, pid, address, data))
    if result == -1 and ctypes.get_errno():
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"ptrace {request:#x}")
    return result


def trace(
    command: Sequence[str], *, cwd: str, env: Mapping[str, str], out: str, err: str, below: str, decide: Decide
) -> Ended:
    """Run ``command`` and ask ``decide`` before each of its calls that would change a file below the folder ``below``.

    Calls on other files are recorded as well, and go on. ``out`` and ``err`` are files for what it prints.
    """
    child = os.fork()
    if child == 0:
        try:
            os.chdir(cwd)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for descriptor, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), descriptor)
            if _libc.ptrace(TRACEME, 0, None, None):
                os._exit(REFUSED)
            os.kill(os.getpid(), signal.SIGSTOP)
            os.execvpe(command[0], list(command), dict(env))
        except BaseException as error:
            os.write(2, repr(error).encode())
        finally:
            os._exit(REFUSED)
    os.waitpid(child, 0)
    _ptrace(SETOPTIONS, child, 0, OPTIONS)
    tracer = _Tracer(below, decide)
    _ptrace(SYSCALL, child)
    while True:
        pid, status = os.waitpid(-1, WALL)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            if pid == child:
                return Ended(os.waitstatus_to_exitcode(status), tracer.calls)
            continue
        number = 0
        if os.WSTOPSIG(status) == signal.SIGTRAP | 0x80:
            tracer.stopped(pid)
        elif status >> 16 == 0 and os.WSTOPSIG(status) not in (signal.SIGSTOP, signal.SIGTRAP):
            number = os.WSTOPSIG(status)
        try:
            _ptrace(SYSCALL, pid, 0, number)
        except ProcessLookupError:
            continue  # it has just been killed


class _Tracer:
    def __init__(self, below: str, decide: Decide) -> None:
        self.calls: list[Call] = []
        self._below, self._decide = os.path.join(below, ""), decide
        column = _ARCHITECTURES[platform.machine()]
        self._names = {value[column]: name for name, value in _CALLS.items() if value[column] is not None}
        self._failing: dict[int, int] = {}
        self._buffer = ctypes.create_string_buffer(128)

    def stopped(self, pid: int) -> None:
        _ptrace(GET_SYSCALL_INFO, pid, len(self._buffer), ctypes.addressof(self._buffer))
        kind = self._buffer.raw[0]
        if kind == 1:
            nr, *arguments = struct.unpack_from("<7Q", self._buffer.raw, 24)
            name = self._names.get(nr)
            if name is not None:
                self._entered(pid, name, arguments)
        elif kind == 2 and pid in self._failing:
            _set_result(pid, -self._failing.pop(pid))

    def _entered(self, pid: int, name: str, arguments: Sequence[int]) -> None:
        if name in _FLAGS and not arguments[_FLAGS[name]] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR | os.O_TRUNC):
            return
        call = Call(name, _path(pid, name, arguments), b"")
        if name == "write":
            call = call._replace(data=_memory(pid, arguments[1], min(arguments[2], 4096)))
        self.calls.append(call)
        if not call.path.startswith(self._below):
            return
        decision = self._decide(call)
        if decision == 0:
            os.kill(pid, signal.SIGKILL)
        elif decision is not None:
            self._failing[pid] = decision
            _skip(pid)


def _path(pid: int, name: str, arguments: Sequence[int]) -> str:
    kind, at = _CALLS[name][:2]
    if kind == "f" or not arguments[at]:  # a path of NULL stands for the descriptor itself
        return os.readlink(f"/proc/{pid}/fd/{arguments[at if kind == 'f' else at - 1]}").removesuffix(" (deleted)")
    text = os.fsdecode(_string(pid, arguments[at]))
    descriptor = ctypes.c_int(arguments[at - 1] & 0xFFFFFFFF).value if kind == "a" else -100
    start = f"/proc/{pid}/cwd" if descriptor == -100 else f"/proc/{pid}/fd/{descriptor}"
    return os.path.normpath(os.path.join(os.readlink(start), text))


def _memory(pid: int, address: int, size: int) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        file.seek(address)
        return file.read(size)


def _string(pid: int, address: int) -> bytes:
    found = b""
    while b"\0" not in found:  # never past the end of a page, behind which there may be nothing
        found += _memory(pid, address + len(found), 4096 - (address + len(found)) % 4096)
    return found.partition(b"\0")[0]


def _skip(pid: int) -> None:
    """Make the call that ``pid`` is entering none at all."""
    if platform.machine() == "x86_64":
        _ptrace(POKEUSER, pid, 15 * 8, -1)  # orig_rax
    else:
        _regset(SETREGSET, pid, ARM_SYSTEM_CALL, ctypes.create_string_buffer(struct.pack("<i", -1), 4))


def _set_result(pid: int, value: int) -> None:
    if platform.machine() == "x86_64":
        _ptrace(POKEUSER, pid, 10 * 8, value)  # rax
    else:
        registers = ctypes.create_string_buffer(34 * 8)
        _regset(GETREGSET, pid, PRSTATUS, registers)
        struct.pack_into("<q", registers, 0, value)
        _regset(SETREGSET, pid, PRSTATUS, registers)


def _regset(request: int, pid: int, kind: int, buffer: ctypes.Array[ctypes.c_char]) -> None:
    vector = struct.pack("<QQ", ctypes.addressof(buffer), len(buffer))
    holder = ctypes.create_string_buffer(vector, len(vector))
    _ptrace(request, pid, kind, ctypes.addressof(holder))
