"""Distributions and wheels made by hand, for tests.

The hashes of RECORD are computed here with hashlib and base64 alone, so that they are independent of patchkit.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def record_hash(data: bytes, algorithm: str = "sha256") -> str:
    """A RECORD hash field: the algorithm, "=", and the digest in urlsafe base64 without padding."""
    digest = hashlib.new(algorithm, data).digest()
    return f"{algorithm}={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def make_dist(
    site_dir: Path,
    name: str,
    version: str,
    files: Mapping[str, str | bytes],
    *,
    record: bool = True,
    dist_info: str | None = None,
    metadata_name: str | None = None,
    newline: str = "\n",
    algorithm: str = "sha256",
    extra_rows: Sequence[Sequence[str]] = (),
    installer: str = "pip",
    info_files: Mapping[str, str] | None = None,
) -> Path:
    """Install a distribution as a wheel installer would: files, METADATA, INSTALLER and RECORD.

    Args:
        site_dir: The site-packages directory; it is made where it does not exist.
        name: The distribution's name, as the metadata spell it unless ``metadata_name`` is given.
        version: Its version.
        files: Contents by path relative to ``site_dir``; text is written as UTF-8 without newline translation.
        record: False leaves RECORD out.
        dist_info: The ``.dist-info`` directory's name; by default the escaped name and the version.
        metadata_name: The ``Name`` of METADATA.
        newline: The line break of RECORD: pip writes ``\\r\\n``, uv ``\\n``.
        algorithm: The hash algorithm of RECORD.
        extra_rows: Further rows, as they are.
        installer: The content of INSTALLER.
        info_files: Further files of the ``.dist-info`` directory (``direct_url.json``, ``top_level.txt``).

    Returns:
        The ``.dist-info`` directory.
    """
    info = site_dir / (dist_info or f"{name.replace('-', '_')}-{version}.dist-info")
    info.mkdir(parents=True, exist_ok=True)
    everything: dict[str, bytes] = {}
    for path, content in files.items():
        everything[path] = content if isinstance(content, bytes) else content.encode("utf-8")
    metadata = f"Metadata-Version: 2.1\nName: {metadata_name or name}\nVersion: {version}\n\nText.\nVersion: 0\n"
    own = {"METADATA": metadata, "INSTALLER": installer + "\n", **(info_files or {})}
    for path, text in own.items():
        everything[f"{info.name}/{path}"] = text.encode("utf-8")
    rows: list[Sequence[str]] = []
    for path, data in everything.items():
        target = site_dir / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        rows.append((path, record_hash(data, algorithm), str(len(data))))
    if record:
        rows += [*extra_rows, (f"{info.name}/RECORD", "", "")]
        (info / "RECORD").write_bytes(record_bytes(rows, newline))
    return info


def record_bytes(rows: Sequence[Sequence[str]], newline: str = "\n") -> bytes:
    """The bytes of a RECORD with these rows."""
    text = io.StringIO()
    csv.writer(text, lineterminator=newline).writerows(rows)
    return text.getvalue().encode("utf-8")


def make_egg_info(
    site_dir: Path,
    name: str,
    version: str,
    files: Mapping[str, str],
    *,
    lists: Mapping[str, str] | None = None,
    directory: bool = True,
    egg_info: str | None = None,
) -> Path:
    """Install a distribution as ``setup.py install`` does: an ``.egg-info`` directory (or file) and no RECORD.

    ``lists`` are the further files of the directory, such as ``installed-files.txt`` and ``top_level.txt``.
    """
    info = site_dir / (egg_info or f"{name.replace('-', '_')}-{version}-py3.11.egg-info")
    header = f"Metadata-Version: 1.1\nName: {name}\nVersion: {version}\n"
    if directory:
        info.mkdir(parents=True)
        (info / "PKG-INFO").write_text(header)
        for path, text in (lists or {}).items():
            (info / path).write_text(text)
    else:
        site_dir.mkdir(parents=True, exist_ok=True)
        info.write_text(header)
    for path, text in files.items():
        (site_dir / path).parent.mkdir(parents=True, exist_ok=True)
        (site_dir / path).write_text(text)
    return info


def make_wheel(
    folder: Path, name: str, version: str, files: Mapping[str, str | bytes], *, tag: str = "py3-none-any"
) -> Path:
    """Build a wheel that pip installs.

    Returns:
        Its path in ``folder``.
    """
    escaped = re.sub(r"[-_.]+", "_", name)
    info = f"{escaped}-{version}.dist-info"
    everything = {path: text if isinstance(text, bytes) else text.encode("utf-8") for path, text in files.items()}
    everything[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    pure = "true" if tag.endswith("none-any") else "false"
    everything[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode()
    )
    rows = [(path, record_hash(data), str(len(data))) for path, data in everything.items()]
    everything[f"{info}/RECORD"] = record_bytes([*rows, (f"{info}/RECORD", "", "")])
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{escaped}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, data in everything.items():
            archive.writestr(path, data)
    return wheel


def keep_wheel(cache: Path, name: str, version: str, files: Mapping[str, str | bytes]) -> Path:
    """Build a wheel and lay it into patchkit's cache folder as a fetched one lies there: no index is asked for it.

    Returns:
        Its path.
    """
    folder = cache / "wheels" / re.sub(r"[-_.]+", "-", name).lower() / version
    wheel = make_wheel(folder, name, version, files)
    (folder / f"{wheel.name}.sha256").write_text(hashlib.sha256(wheel.read_bytes()).hexdigest(), encoding="ascii")
    return wheel


def damage_member(wheel: Path, member: str, how: str) -> None:
    """Write a wheel anew, with one member that cannot be read as it should.

    Args:
        wheel: The wheel.
        member: The member's name.
        how: "deflate": what it is packed to is no deflate stream; "encrypted": it says that it is; "checksum": its CRC
            is another file's; "lying": it unpacks to more than it says.
    """
    with zipfile.ZipFile(wheel) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        found = archive.getinfo(member)
    data = bytearray(wheel.read_bytes())
    central = data.rindex(member.encode()) - 46
    if how == "deflate":
        start = found.header_offset + 30 + len(member)
        data[start : start + found.compress_size] = b"\xff" * found.compress_size
    elif how == "encrypted":
        data[central + 8] |= 1
        data[found.header_offset + 6] |= 1
    elif how == "checksum":
        data[central + 16] ^= 1
    else:
        data[central + 24 : central + 28] = (10).to_bytes(4, "little")
    wheel.write_bytes(data)
