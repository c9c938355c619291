"""A WebSocket client by hand.

A library refuses to send broken frames, answers pings and reads all the time. Cases about broken
frames, dead peers and slow readers need a client that doesn't.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import struct
import time

from expect import TIMEOUT, Fail, b64
from server import Server

CONTINUATION, TEXT, CLOSE, PING = 0x0, 0x1, 0x8, 0x9


class RawSocket:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(
        cls, server: Server, path: str = "/ws", headers: dict | None = None, limit: int = 1 << 16
    ) -> tuple[RawSocket, int, bytes]:
        """Asks for an upgrade. Returns the socket, the HTTP status, and the body of a refusal."""
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=limit)
        fields = {
            "Host": f"127.0.0.1:{server.port}",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": b64(secrets.token_bytes(16)),
            "Sec-WebSocket-Version": "13",
            **(headers or {}),
        }
        request = f"GET {path} HTTP/1.1\r\n"
        request += "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"{request}\r\n".encode())
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), TIMEOUT)
        status = int(head.split(maxsplit=2)[1])
        body = b"" if status == 101 else await read_body(reader, head)
        return cls(reader, writer), status, body

    def close(self) -> None:
        if self.writer.transport:
            self.writer.transport.abort()

    # Sending

    def frame(self, opcode: int, payload: bytes, fin: bool = True) -> None:
        """Queues one WebSocket frame, masked with zeros: that is valid and costs nothing."""
        size = len(payload)
        head = bytes([opcode | (0x80 if fin else 0)])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 1 << 16:
            head += struct.pack(">BH", 0x80 | 126, size)
        else:
            head += struct.pack(">BQ", 0x80 | 127, size)
        self.writer.write(head + bytes(4) + payload)

    def json(self, frame: dict) -> None:
        self.frame(TEXT, json.dumps(frame).encode())

    async def hello(self, server: Server, device_id: str) -> dict:
        self.json({"t": "hello", "token": server.token, "device": {"id": device_id}})
        return await self.wait("ready")

    # Receiving

    async def next_frame(self, timeout: float = TIMEOUT) -> tuple[int, bytes]:
        """The next frame as opcode and payload.

        Raises TimeoutError, or ConnectionError or IncompleteReadError at the end of the connection.
        """
        return await asyncio.wait_for(self._read_frame(), timeout)

    async def _read_frame(self) -> tuple[int, bytes]:
        first, second = await self.reader.readexactly(2)
        size = second & 0x7F
        if size >= 126:
            width = 2 if size == 126 else 8
            size = int.from_bytes(await self.reader.readexactly(width), "big")
        return first & 0x0F, await self.reader.readexactly(size)

    async def wait(self, kind: str, timeout: float = TIMEOUT) -> dict:
        """The next protocol frame of this type. Others are skipped."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                opcode, payload = await self.next_frame(max(0.01, deadline - time.monotonic()))
            except TimeoutError:
                raise Fail(f"expected a {kind} frame within {timeout:g} s; got none") from None
            except (ConnectionError, asyncio.IncompleteReadError):
                raise Fail(f"expected a {kind} frame; the connection ended") from None
            if opcode == CLOSE:
                raise Fail(f"expected a {kind} frame; got close {close_code(payload)}")
            if opcode == TEXT:
                frame = json.loads(payload)
                if frame["t"] == kind:
                    return frame

    async def until_closed(self, timeout: float = TIMEOUT) -> tuple[list[dict], int | None]:
        """All protocol frames up to the end, and the close code: None if the link just broke."""
        deadline = time.monotonic() + timeout
        frames: list[dict] = []
        while True:
            try:
                opcode, payload = await self.next_frame(max(0.01, deadline - time.monotonic()))
            except TimeoutError:
                raise Fail(
                    f"expected the connection to close within {timeout:g} s; it is open"
                ) from None
            except (ConnectionError, asyncio.IncompleteReadError):
                return frames, None
            if opcode == CLOSE:
                return frames, close_code(payload)
            if opcode == TEXT:
                frames.append(json.loads(payload))


async def read_body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    read = reader.readexactly(int(length[1])) if length else reader.read(1 << 16)
    try:
        return await asyncio.wait_for(read, 5)
    except (TimeoutError, ConnectionError):
        return b""


def close_code(payload: bytes) -> int | None:
    return int.from_bytes(payload[:2], "big") if len(payload) >= 2 else None
