"""Whether it is on."""

from types import SimpleNamespace

_profile_state = SimpleNamespace(profile_session=None)
