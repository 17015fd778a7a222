"""What stands before a diff: the subject, commit and addresses of the mail that ``git format-patch`` writes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from patchkit.runtime.ledger import open_regular
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.site.distribution import Distribution

_DIFF = re.compile(rb"^(?:diff --git |--- \S|Index: )", re.MULTILINE)
_PULL = re.compile(r"https://[^\s\"'<>]+/(?:pull|merge_requests|issues)/\d+")
_NUMBER = re.compile(r"\(#(\d+)\)$")
_REPOSITORY = re.compile(
    r"^(?:Home-page:|Project-URL:[^,\n]*,)\s*(https://github\.com/(?!sponsors/)[\w.-]+/[\w.-]+)", re.M
)
_COMMIT = re.compile(r"^From ([0-9a-f]{40}) ", re.MULTILINE)


class Mail(NamedTuple):
    """The subject without its ``[PATCH 1/2]``, the commit, the addresses of pull requests and issues.

    ``number`` is that of the pull request in the subject, as GitHub writes it there when it merges, where its address
    is not known. Of several mails in one file, it is the first one's.
    """

    subject: str | None
    commit: str | None
    links: tuple[str, ...]
    number: str | None


def read_mail(diff: bytes, distribution: Distribution) -> Mail:
    """What the text before the first file of a diff says.

    Args:
        diff: The diff, with what stands before it.
        distribution: Whose repository, where its metadata names one on GitHub, the number in the subject is of.
    """
    found = _DIFF.search(diff)
    head = diff[: found.start() if found else 0].decode("utf-8", "replace").replace("\r\n", "\n")
    subject = _subject(head)
    links = list(dict.fromkeys(_PULL.findall(head)))
    numbered = _NUMBER.search(subject or "")
    number = None
    if numbered is not None and not any(link.endswith(f"/pull/{numbered[1]}") for link in links):
        repository = _repository(distribution)
        if repository is None:
            number = numbered[1]
        else:
            links.append(f"{repository}/pull/{numbered[1]}")
    commit = _COMMIT.search(head)
    return Mail(subject, commit[1] if commit else None, tuple(links), number)


def _subject(head: str) -> str | None:
    found = re.search(r"^Subject: (.*(?:\n[ \t].*)*)", head, re.MULTILINE)
    if found is None:
        return None
    return " ".join(re.sub(r"^(?:\[[^\]]*\]\s*)+", "", found[1]).split()) or None


def _repository(distribution: Distribution) -> str | None:
    """The one repository on GitHub that the metadata names."""
    import os

    try:
        with open_regular(os.path.join(distribution.info, "METADATA")) as file:
            head = file.read(1 << 20).decode("utf-8", "replace").replace("\r\n", "\n").partition("\n\n")[0]
    except OSError:
        return None
    found = {address.removesuffix(".git").rstrip("/") for address in _REPOSITORY.findall(head)}
    return found.pop() if len(found) == 1 else None
