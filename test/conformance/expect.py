"""Assertions, sample data and limits that every case shares."""

from __future__ import annotations

import base64
import json
import re
import secrets
import struct

TIMEOUT = 20.0  # seconds to wait for anything that should arrive at once
MIB = 1 << 20

ERROR_CODES = {
    "auth_failed",
    "bad_frame",
    "device_offline",
    "forbidden",
    "internal",
    "rate_limited",
    "too_big",
    "unsupported_frame",
}

# A pairing or approval code: eight letters and digits without look-alikes, maybe with a dash.
CODE = re.compile(r"(?<![A-Za-z0-9])[A-HJ-NP-Z2-9]{4}-?[A-HJ-NP-Z2-9]{4}(?![A-Za-z0-9])")

# The smallest useful picture: one pixel.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Fail(AssertionError):
    """The server broke a promise of the protocol."""


class Skip(Exception):
    """The case does not apply to this server or cannot run on this machine."""


def expect(holds, what: str, got) -> None:
    """Fails with "expected WHAT; got GOT" unless the condition holds."""
    if not holds:
        raise Fail(f"expected {what}; got {brief(got)}")


def brief(value, limit: int = 220) -> str:
    """Any value on one line that fits a report."""
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, default=str)
    line = value.replace("\n", "\\n")
    if len(line) > limit:
        line = f"{line[:limit]}… ({len(line)} characters)"
    return line


def fresh_id(prefix: str = "m") -> str:
    return f"{prefix}-{secrets.token_hex(6)}"


def fresh_token() -> str:
    return secrets.token_hex(32)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def pattern(size: int) -> bytes:
    """The content of the demo agent's `/demo file N`: byte i is i mod 251."""
    period = bytes(range(251))
    return (period * -(-size // 251))[:size]


def wav(seconds: float = 0.2) -> bytes:
    """A real WAV file: 16 kHz, one channel, 16-bit PCM."""
    rate = 16_000
    samples = [i * 37 % 2000 - 1000 for i in range(int(rate * seconds))]
    pcm = struct.pack(f"<{len(samples)}h", *samples)
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, rate * 2, 2, 16)
    body = b"WAVE" + form + struct.pack("<4sI", b"data", len(pcm)) + pcm
    return struct.pack("<4sI", b"RIFF", len(body)) + body
