"""The file of an agent: what happened to it, one line an event, so that a crash loses no more than the last one.

The first line says what the agent is; each line starts with the checksum of its rest. A line that a crash has cut short
is the last one, and dropped; anything else that does not fit is an error.
"""

import json
import os
import zlib
from pathlib import Path
from typing import Any

VERSION = 1
FORMAT = "jaxbandit agent"


class Journal:
    """An open file, locked for this process: ``append`` is in the operating system's hands when it returns."""

    def __init__(self, path: Path, lock: Any):
        self.path = path
        self.lock = lock
        self._file = open(path, "r+b", buffering=0)  # noqa: SIM115
        self._end = self._file.seek(0, os.SEEK_END)

    def append(self, event: list[Any]) -> None:
        """Write an event, whole or not at all."""
        line = _line(event)
        try:
            if self._file.write(line) != len(line):
                raise OSError(f"{self.path} could not be written to the end: is the disk full?")
        except OSError:
            self._file.truncate(self._end)
            self._file.seek(self._end)
            raise
        self._end += len(line)

    def close(self, *, release: bool = True) -> None:
        self._file.close()
        if release:
            self.lock.release()


def locked(path: Path) -> Any:
    """A lock on the file of an agent, which the operating system releases when the process ends, however it ends.

    Raises:
        ImportError: filelock is not installed.
        RuntimeError: another agent has it.
    """
    try:
        import filelock
    except ImportError as error:
        raise ImportError("saving an agent needs filelock: pip install 'jaxbandit[online]'") from error
    lock = filelock.FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise RuntimeError(f"{path} is in use by another agent; close it, or save to another file") from None
    return lock


def write(path: Path, header: dict[str, Any], events: list[list[Any]], lock: Any) -> Journal:
    """A new file in the place of the old one, at once: there is always either this or that."""
    temporary = path.with_name(path.name + ".new")
    with open(temporary, "wb") as file:
        file.write(_line({"format": FORMAT, "version": VERSION} | header))
        file.writelines(map(_line, events))
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return Journal(path, lock)


def read(path: Path) -> tuple[dict[str, Any], list[list[Any]]]:
    """Header and events of a file.

    Raises:
        ValueError: the file is not one of an agent, is of another version, or is damaged.
    """
    lines = path.read_bytes().split(b"\n")
    whole, cut = lines[:-1], lines[-1]
    header, *events = (_parsed(line, path, number) for number, line in enumerate(whole, start=1)) if whole else ({},)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{path} is not the file of a jaxbandit.Agent")
    if header["version"] != VERSION:
        raise ValueError(f"{path} has version {header['version']}; this jaxbandit reads version {VERSION}")
    if cut:
        with open(path, "r+b") as file:
            file.truncate(sum(len(line) + 1 for line in whole))
    return header, events


def _line(content: Any) -> bytes:
    text = json.dumps(content, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parsed(line: bytes, path: Path, number: int) -> Any:
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        where = "is not the file of a jaxbandit.Agent" if number == 1 else f"is damaged in line {number}"
        raise ValueError(f"{path} {where}")
    return json.loads(text)
