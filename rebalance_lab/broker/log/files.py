"""Whole files: read at once, and written so that a crash leaves the old one or the new one."""

from __future__ import annotations

from rebalance_lab.world.storage import NoSuchFile, Storage

#: What a file is called until it is complete.
TEMPORARY = ".tmp"


async def read_file(storage: Storage, path: str) -> bytes | None:
    """All of it; None if there is none."""
    try:
        file = await storage.open(path)
    except NoSuchFile:
        return None
    try:
        return await file.pread(0, file.size)
    finally:
        await file.close()


async def replace_file(storage: Storage, path: str, data: bytes) -> None:
    """Write `path` anew, durably: a crash, or a loss of power, leaves the old file or the new one. The only writer of
    `path` calls it."""
    await write_file(storage, path + TEMPORARY, data, sync=True)
    await storage.rename(path + TEMPORARY, path)
    await storage.sync_folder(path.rpartition("/")[0])


async def write_file(storage: Storage, path: str, data: bytes, *, sync: bool) -> None:
    """Write `path` anew. A crash may leave a part of it."""
    file = await storage.open(path, create=True)
    try:
        if file.size:
            await file.truncate(0)
        await file.append(data)
        if sync:
            await file.sync()
    finally:
        await file.close()


async def delete_file(storage: Storage, path: str) -> None:
    """Nothing happens if there is none."""
    try:
        await storage.delete(path)
    except NoSuchFile:
        return
