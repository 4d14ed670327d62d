"""The codec that leaves messages as they are."""

from __future__ import annotations

from typing import Any


class AsObjects:
    """A `world.network.Codec` for messages that never leave the process: a frame is (correlation id, message)."""

    malformed: tuple[type[Exception], ...] = ()

    def encode_request(self, correlation_id: int, request: Any) -> tuple[int, Any]:
        return correlation_id, request

    def decode_request(self, frame: tuple[int, Any]) -> tuple[int, Any]:
        return frame

    def encode_reply(self, correlation_id: int, request: Any, reply: Any) -> tuple[int, Any]:
        return correlation_id, reply

    def decode_reply(self, request: Any, frame: tuple[int, Any]) -> tuple[int, Any]:
        return frame
