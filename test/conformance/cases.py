"""How a case is declared, and what it gets."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Awaitable, Callable

from expect import Fail
from phone import Phone
from rawsocket import RawSocket
from server import Server

# Everybody with a valid token is approved. Cases about approval run without it.
APPROVED: dict[str, str | None] = {"MOBILE_ALLOW_ALL_USERS": "1"}
NOT_APPROVED: dict[str, str | None] = {"MOBILE_ALLOW_ALL_USERS": None}

CORE, FULL = "core", "full"
GROUPS = (CORE, FULL)


@dataclass(frozen=True)
class Case:
    name: str
    group: str
    about: str
    body: Callable[[Run], Awaitable[None]]
    settings: dict[str, str | None] | None  # None: it runs on the shared instance
    slow: bool
    heavy: bool


CASES: dict[str, Case] = {}


def case(
    group: str,
    settings: dict[str, str | None] | None = None,
    *,
    own: bool = False,
    slow: bool = False,
    heavy: bool = False,
):
    """Registers a case.

    With `settings` or `own` it gets an instance of its own. `slow` marks a case that must wait
    longer than 15 seconds, `heavy` one that moves megabytes: only one heavy case runs at a time.
    """
    if group not in GROUPS:
        raise ValueError(f"group {group!r}: must be one of {', '.join(GROUPS)}")

    def register(body: Callable[[Run], Awaitable[None]]):
        name, about = body.__name__, inspect.getdoc(body)
        if not about:
            raise ValueError(f"case {name}: a docstring must say what the protocol promises")
        if name in CASES:
            raise ValueError(f"case {name}: the name is taken")
        instance = None
        if own or settings is not None:
            instance = {**APPROVED, **(settings or {})}
        CASES[name] = Case(name, group, " ".join(about.split()), body, instance, slow, heavy)
        return body

    return register


class Run:
    """One run of one case: its server, and the connections to close afterwards."""

    def __init__(self, server: Server):
        self.server = server
        self._phones: list[Phone] = []
        self._sockets: list[RawSocket] = []

    def phone(self, device_id: str | None = None, **options) -> Phone:
        phone = Phone(self.server, device_id, **options)
        self._phones.append(phone)
        return phone

    async def connected(self, device_id: str | None = None, **options) -> Phone:
        return await self.phone(device_id, **options).connect()

    async def raw(
        self, path: str = "/ws", headers: dict | None = None
    ) -> tuple[RawSocket, int, bytes]:
        opened = await RawSocket.open(self.server, path, headers)
        self._sockets.append(opened[0])
        return opened

    def check_invariants(self) -> None:
        """What must hold in every case: the server runs, and its frames were well formed."""
        if self.server.exited() and not self.server.stopped_by_suite:
            status = self.server.process.returncode
            raise Fail(f"the server exited with {status}: {self.server.last_lines()}")
        for phone in self._phones:
            if phone.problems:
                raise Fail(f"expected well-formed frames; got {phone.problems[0]}")

    async def close(self) -> None:
        for socket in self._sockets:
            socket.close()
        for phone in self._phones:
            await phone.drop()
