"""What somebody put where a file is to be written: a folder, a link to nothing, a folder that is a link out of here."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from patchkit.errors import SiteError

if TYPE_CHECKING:
    from patchkit.site.environment import Site


def refuse_obstacle(absolute: str) -> None:
    """Refuse a folder, a device or a link to nothing in the place of a file that patchkit added or took away.

    Raises:
        SiteError: ``not-a-file``: it is somebody's, and only that one can say whether it may go.
    """
    try:
        mode = os.lstat(absolute).st_mode
    except OSError:
        return  # nothing is there; where it cannot be asked, reading tells why
    if stat.S_ISREG(mode) or os.path.isfile(absolute):
        return
    what, command = "something that is no file", "rm"
    if stat.S_ISLNK(mode):
        what = f"a link to {os.readlink(absolute)}, which is no file"
    elif stat.S_ISDIR(mode):
        what, command = "a folder", "rmdir"
    from shlex import quote

    raise SiteError(
        f"{absolute}: {what}, is in the file's place",
        code="not-a-file",
        hint=f"move it away or remove it (`{command} {quote(absolute)}`), then the same command again",
        details={"path": absolute, "state": "modified"},
    )


def refuse_led_out(site: Site, absolute: str) -> None:
    """Refuse a file to be written whose folder lies elsewhere by now, behind a link that somebody put in its place.

    Raises:
        SiteError: ``leads-out``, naming the link.
    """
    sites = (site.home, *site.paths)
    roots = tuple(os.path.join(os.path.realpath(root), "") for root in sites)
    link = folder = os.path.dirname(absolute)
    if os.path.join(os.path.realpath(folder), "").startswith(roots):
        return
    # The outermost link below the site: what lies behind it is not the site's to change.
    while folder not in sites and os.path.join(folder, "") not in roots and folder != os.path.dirname(folder):
        if os.path.islink(folder):
            link = folder
        folder = os.path.dirname(folder)
    from shlex import quote

    raise SiteError(
        f"{absolute}: leads out of the site: {link} is a link to {os.path.realpath(link)}; nothing was written",
        code="leads-out",
        hint=f"put the folder itself there again in place of the link (`rm {quote(link)}`, then move or install it), "
        "then the same command again",
        details={"path": absolute, "link": link},
    )
