"""The five ways of compressing the records of a batch, as Kafka's clients write and read them.

snappy: blocks in the framing of xerial's library; bare blocks, which librdkafka writes, are read, too. lz4: frames of
independent blocks, because Java's reader refuses linked ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from struct import Struct, error

import cramjam

#: What the records of one batch may come to. Kafka has no such limit; a megabyte of zstd may stand for hundreds.
MOST_DECOMPRESSED_BYTES = 32 << 20


class Undecompressable(Exception):
    """Compressed bytes that cannot be read, or come to too many. The message says why."""


class Compression(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(compression: Compression, data: bytes) -> bytes:
    return _COMPRESSORS[compression](data)


def decompress(compression: Compression, data: bytes, most_bytes: int = MOST_DECOMPRESSED_BYTES) -> bytes:
    """Raises Undecompressable, for more than `most_bytes` without having allocated them."""
    try:
        return _DECOMPRESSORS[compression](data, most_bytes)
    except (cramjam.DecompressionError, zlib.error, error) as wrong:
        raise Undecompressable(f"not {compression.name.lower()}: {wrong}") from None


def _too_many(most_bytes: int) -> Undecompressable:
    return Undecompressable(f"more than {most_bytes} bytes when decompressed")


def _plain(data: bytes, most_bytes: int) -> bytes:
    return data


# -- gzip -----------------------------------------------------------------------------------------

_GZIP_WINDOW = 31  # zlib's largest window, and gzip's header


def _gzip(data: bytes) -> bytes:
    return zlib.compress(data, wbits=_GZIP_WINDOW)


def _gunzip(data: bytes, most_bytes: int) -> bytes:
    stream = zlib.decompressobj(_GZIP_WINDOW)
    out = stream.decompress(data, most_bytes + 1)
    if len(out) > most_bytes:
        raise _too_many(most_bytes)
    if not stream.eof or stream.unused_data:
        raise Undecompressable("not gzip: it ends elsewhere")
    return out


# -- snappy ---------------------------------------------------------------------------------------

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + Struct(">ii").pack(1, 1)  # version, and the oldest that can read it
_BLOCK_LENGTH = Struct(">i")
_SNAPPY_BLOCK_BYTES = 32 * 1024
#: No three bytes of snappy stand for more than a copy of 64 bytes.
_SNAPPY_MOST_RATIO = 64


def _snappy(data: bytes) -> bytes:
    out = [_XERIAL_HEADER]
    for at in range(0, len(data), _SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _SNAPPY_BLOCK_BYTES]))
        out += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(out)


def _unsnappy(data: bytes, most_bytes: int) -> bytes:
    if not data:
        return b""
    blocks = list(_xerial_blocks(data)) if data.startswith(_XERIAL_MAGIC) else [data]
    if sum(_unsnapped_bytes(block) for block in blocks) > most_bytes:
        raise _too_many(most_bytes)
    return b"".join(bytes(cramjam.snappy.decompress_raw(block)) for block in blocks)


def _xerial_blocks(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        if data.startswith(_XERIAL_MAGIC, at):  # streams may follow one another
            at += len(_XERIAL_HEADER)
            continue
        (length,) = _BLOCK_LENGTH.unpack_from(data, at)
        at += _BLOCK_LENGTH.size
        if not 0 < length <= len(data) - at:
            raise Undecompressable(f"not snappy: a block of {length} bytes, {len(data) - at} are left")
        yield data[at : at + length]
        at += length


def _unsnapped_bytes(block: bytes) -> int:
    """What a block says it stands for."""
    size: int = cramjam.snappy.decompress_raw_len(block)
    if size > len(block) * _SNAPPY_MOST_RATIO:
        raise Undecompressable(f"not snappy: {len(block)} bytes cannot stand for {size}")
    return size


# -- lz4 and zstd ---------------------------------------------------------------------------------

#: Magic; version 1 with independent blocks; blocks of 64 KB at most; the checksum of these two bytes.
_LZ4_HEADER = bytes.fromhex("04224d18 60 40 82")
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_LENGTH = Struct("<I")
_LZ4_STORED = 0x80000000
_LZ4_END = bytes(4)

_ZSTD_LEVEL = 3  # Kafka's default

_FIRST_GUESS_BYTES = 64 * 1024
_GUESS_RATIO = 4
_BUFFER_TOO_SMALL = "whole buffer"


def _lz4(data: bytes) -> bytes:
    """cramjam's own frames have linked blocks."""
    out = [_LZ4_HEADER]
    for at in range(0, len(data), _LZ4_BLOCK_BYTES):
        plain = data[at : at + _LZ4_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            out += (_LZ4_LENGTH.pack(len(block)), block)
        else:
            out += (_LZ4_LENGTH.pack(len(plain) | _LZ4_STORED), plain)
    return b"".join((*out, _LZ4_END))


def _unlz4(data: bytes, most_bytes: int) -> bytes:
    return _into(cramjam.lz4.decompress_into, data, most_bytes)


def _zstd(data: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))


def _unzstd(data: bytes, most_bytes: int) -> bytes:
    return _into(cramjam.zstd.decompress_into, data, most_bytes)


def _into(decompress_into: Callable[[bytes, bytearray], int], data: bytes, most_bytes: int) -> bytes:
    """Decompress into a buffer that grows until the result fits, or may not grow further."""
    size = max(_FIRST_GUESS_BYTES, len(data) * _GUESS_RATIO)
    while True:
        buffer = bytearray(min(size, most_bytes))
        try:
            written = decompress_into(data, buffer)
        except cramjam.DecompressionError as wrong:
            if _BUFFER_TOO_SMALL not in str(wrong):
                raise
            if size >= most_bytes:
                raise _too_many(most_bytes) from None
        else:
            return bytes(memoryview(buffer)[:written])
        size *= _GUESS_RATIO


_COMPRESSORS: dict[Compression, Callable[[bytes], bytes]] = {
    Compression.NONE: bytes,
    Compression.GZIP: _gzip,
    Compression.SNAPPY: _snappy,
    Compression.LZ4: _lz4,
    Compression.ZSTD: _zstd,
}
_DECOMPRESSORS: dict[Compression, Callable[[bytes, int], bytes]] = {
    Compression.NONE: _plain,
    Compression.GZIP: _gunzip,
    Compression.SNAPPY: _unsnappy,
    Compression.LZ4: _unlz4,
    Compression.ZSTD: _unzstd,
}
