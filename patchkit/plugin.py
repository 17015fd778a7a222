"""The pytest plugin: tests that count on patches fail where these are not in force, instead of testing something else.

Loaded by pytest through its entry point, so importing it costs nothing of patchkit's.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

OPTION = "patchkit_require"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--patchkit-require``, and ``patchkit_require`` in the configuration."""
    group = parser.getgroup("patchkit")
    group.addoption(
        "--patchkit-require",
        action="append",
        metavar="NAME",
        help="do not start unless this patch is in force here; may be repeated",
    )
    parser.addini(OPTION, "patches without which no test is run, one a line", type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    """The marker ``patchkit``."""
    config.addinivalue_line("markers", "patchkit(*names): the test fails unless these patches are in force here")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Stop before collection, which imports what the patches are for, where one that was asked for is not in force.

    Raises:
        pytest.UsageError: One is not; the message has the state of each and what to type.
    """
    names = [*session.config.getini(OPTION), *(session.config.getoption(OPTION) or ())]
    if names:
        _require(names, pytest.UsageError)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test whose marker names a patch that is not in force."""
    for mark in item.iter_markers("patchkit"):
        if mark.args:
            _require(list(mark.args), lambda text: pytest.fail.Exception(text, pytrace=False))


@pytest.fixture(scope="session")
def require_patches() -> Callable[..., None]:
    """``patchkit.require``, for a test that knows only in its course which patches it counts on."""
    from patchkit import require

    return require


def _require(names: list[str], failure: Callable[[str], BaseException]) -> None:
    from patchkit import PatchkitError, require

    try:
        require(*names)
    except PatchkitError as error:
        hint = f"\nhint: {error.hint}" if error.hint else ""
        raise failure(f"{error.message}{hint}") from None
