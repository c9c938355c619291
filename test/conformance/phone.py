"""A phone: one installation of an app, with one connection at a time."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import re
import time
from typing import Callable, Iterable

import websockets
from websockets.asyncio.client import connect

from expect import TIMEOUT, Fail, b64, brief, expect, fresh_id
from message import Message, SequenceCheck, malformed
from server import Server

Match = Callable[[dict], bool] | str  # a predicate, or the type of a frame


def predicate(match: Match) -> Callable[[dict], bool]:
    return (lambda f: f["t"] == match) if isinstance(match, str) else match


class Phone:
    """Connects, sends, and keeps every frame that comes, across its connections.

    Positions in `frames` mark points in time: `now()` before an action, and then `start=` in the
    methods that wait. `since_connect` is the position at which the present connection began.
    """

    def __init__(
        self,
        server: Server,
        device_id: str | None = None,
        *,
        token: str | None = None,
        user: str | None = None,
        accept: Iterable[str] = (),
        headers: dict | None = None,
        origin: str | None = None,
        hello: dict | None = None,
    ):
        self.server = server
        self.id = device_id or fresh_id("dev")
        self.token = token or server.token
        self.user = user
        self.accept = tuple(accept)
        self.headers = headers or {}
        self.origin = origin
        self.hello_extra = hello or {}

        self.frames: list[dict] = []
        self.times: list[float] = []
        self.problems: list[str] = []
        self.since_connect = 0
        self.ready: dict | None = None

        self.socket = None
        self.close_code: int | None = None
        self.closed = asyncio.Event()
        self._reading: asyncio.Task | None = None
        self._arrived = asyncio.Condition()

    # Connecting

    def hello(self, resume: dict | None = None) -> dict:
        frame = {
            "t": "hello",
            "token": self.token,
            "device": {"id": self.id, "name": "Suite", "platform": "test"},
            "user": {"id": self.user, "name": self.user} if self.user else None,
            "accept": list(self.accept) or None,
            "resume": resume or None,
            **self.hello_extra,
        }
        return {field: value for field, value in frame.items() if value is not None}

    async def open(self) -> Phone:
        """Opens the socket without a hello."""
        await self.drop()
        self.socket = await connect(
            self.server.url,
            proxy=None,
            compression=None,
            max_size=None,
            max_queue=None,
            ping_interval=None,
            open_timeout=TIMEOUT,
            close_timeout=2,
            additional_headers=self.headers,
            origin=self.origin,
        )
        self.closed = asyncio.Event()
        self.close_code = None
        self.since_connect = self.now()
        self._reading = asyncio.create_task(self._read(self.socket, self.closed))
        return self

    async def connect(self, resume: dict | None = None) -> Phone:
        """Opens the socket, says hello and waits for ready."""
        await self.open()
        await self.send(self.hello(resume))
        self.ready = await self._hello_answer("ready")
        expect(self.ready["t"] == "ready", "ready", self.ready)
        return self

    async def rejected(
        self,
        frame: dict | None = None,
        codes: tuple[str, ...] = ("auth_failed",),
        close: int = 1008,
    ) -> dict:
        """Says hello and expects an error with one of these codes, then this close code."""
        await self.open()
        await self.send(frame or self.hello())
        answer = await self._hello_answer("an error frame")
        wanted = " or ".join(codes)
        expect(answer["t"] == "error" and answer["code"] in codes, f"error {wanted}", answer)
        await self.closed_with(close)
        return answer

    async def _hello_answer(self, what: str) -> dict:
        return await self.wait(
            lambda f: f["t"] in ("ready", "error"), what, start=self.since_connect
        )

    async def closed_with(self, *codes: int, timeout: float = TIMEOUT) -> int | None:
        """Waits for the server to close the connection, with one of these codes if named."""
        wanted = " or ".join(map(str, codes)) or "any code"
        try:
            await asyncio.wait_for(self.closed.wait(), timeout)
        except TimeoutError:
            raise Fail(f"expected close {wanted} within {timeout:g} s; still connected") from None
        expect(not codes or self.close_code in codes, f"close {wanted}", self.close_code)
        return self.close_code

    async def close(self) -> None:
        """Closes the connection with the WebSocket handshake."""
        if self.socket:
            with contextlib.suppress(Exception):
                await self.socket.close()
        await self._stop_reading()

    async def drop(self) -> None:
        """Loses the link: no close frame, no goodbye."""
        if self.socket and self.socket.transport:
            self.socket.transport.abort()
        await self._stop_reading()

    async def _stop_reading(self) -> None:
        task, self._reading = self._reading, None
        if task:
            await asyncio.wait({task}, timeout=5)
            task.cancel()

    async def _read(self, socket, closed: asyncio.Event) -> None:
        sequence = SequenceCheck()
        try:
            async for data in socket:
                frame = self._decode(data)
                if frame is None:
                    continue
                found = (malformed(frame, self.accept), sequence.problem(frame))
                self.problems += [problem for problem in found if problem]
                async with self._arrived:
                    self.frames.append(frame)
                    self.times.append(time.monotonic())
                    self._arrived.notify_all()
        except (websockets.ConnectionClosed, OSError):
            pass
        finally:
            if socket is self.socket:
                self.close_code = socket.close_code
            closed.set()
            async with self._arrived:
                self._arrived.notify_all()

    def _decode(self, data: str | bytes) -> dict | None:
        if isinstance(data, bytes):
            self.problems.append("a binary message from the server")
            return None
        try:
            frame = json.loads(data)
        except ValueError:
            frame = None
        if isinstance(frame, dict) and isinstance(frame.get("t"), str):
            return frame
        self.problems.append(f"no JSON object with a string `t`: {brief(data)}")
        return None

    # Sending

    async def send(self, frame: dict | str | bytes) -> None:
        """Sends a frame, or any text or bytes as they are."""
        data = json.dumps(frame, ensure_ascii=False) if isinstance(frame, dict) else frame
        try:
            await asyncio.wait_for(self.socket.send(data), 2 * TIMEOUT)
        except websockets.ConnectionClosed as err:
            raise Fail(f"expected an open connection; it is closed: {err}") from None

    async def say(self, text: str, ident: str | None = None, **fields) -> str:
        """Sends a text and returns its id."""
        ident = ident or fresh_id()
        await self.send({"t": "text", "id": ident, "text": text, **fields})
        return ident

    # Waiting

    def now(self) -> int:
        return len(self.frames)

    async def wait(
        self,
        match: Match,
        what: str,
        *,
        start: int = 0,
        timeout: float = TIMEOUT,
        or_closed: bool = False,
    ) -> dict | None:
        """The first frame from `start` on that matches.

        At the end of the connection it fails, or returns None with `or_closed`.
        """
        matches = predicate(match)
        deadline = time.monotonic() + timeout
        position = start
        while True:
            for frame in self.frames[position:]:
                if matches(frame):
                    return frame
            position = max(position, len(self.frames))
            if self.closed.is_set():
                if or_closed:
                    return None
                raise Fail(
                    f"expected {what}; the connection closed ({self.close_code})"
                    f" after {self.recent(start)}"
                )
            left = deadline - time.monotonic()
            if left <= 0:
                raise Fail(f"expected {what} within {timeout:g} s; got {self.recent(start)}")
            async with self._arrived:
                if position == len(self.frames) and not self.closed.is_set():
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._arrived.wait(), left)

    async def nothing(
        self, match: Match, what: str, seconds: float = 1.5, start: int | None = None
    ) -> None:
        """No frame that matches may come for some time."""
        position = self.now() if start is None else start
        await asyncio.sleep(seconds)
        unwanted = list(filter(predicate(match), self.frames[position:]))
        expect(not unwanted, f"no {what}", unwanted[:1])

    async def ping(self) -> dict:
        ident = fresh_id("ping")
        await self.send({"t": "ping", "id": ident})
        return await self.wait(lambda f: f["t"] == "pong" and f.get("id") == ident, "a pong")

    async def error(
        self,
        code: str | tuple[str, ...],
        ref: str | None = None,
        start: int = 0,
        timeout: float = TIMEOUT,
    ) -> dict:
        codes = (code,) if isinstance(code, str) else code
        wanted = f"error {' or '.join(codes)}"
        frame = await self.wait("error", wanted, start=start, timeout=timeout)
        expect(frame["code"] in codes, wanted, frame)
        expect(ref is None or frame.get("ref") == ref, f"ref {ref}", frame)
        return frame

    async def ack_of(self, ident: str, start: int = 0) -> dict:
        """The `accepted` frame for this id, or the error that names it."""

        def answers(f: dict) -> bool:
            return f["t"] in ("accepted", "error") and ident in (f.get("id"), f.get("ref"))

        return await self.wait(answers, f"accepted for {ident}", start=start)

    def recent(self, start: int = 0) -> str:
        """The last frames in short, for a report."""
        hidden = {"t", "data", "capabilities", "chunk", "options"}
        lines = [
            f["t"] + brief({k: v for k, v in f.items() if k not in hidden}, 90)
            for f in self.frames[start:][-8:]
        ]
        return brief(", ".join(lines) or "nothing")

    # The conversation

    def chat(self, start: int = 0) -> dict[str, Message]:
        """Messages by id, in the order of their first frames."""
        messages: dict[str, Message] = {}
        for frame in self.frames[start:]:
            if frame["t"] == "message":
                messages.setdefault(frame["id"], Message(frame["id"])).apply(frame)
        return messages

    async def reply(
        self,
        start: int = 0,
        match: Callable[[str], bool] | None = None,
        timeout: float = TIMEOUT,
        what: str = "a final message",
    ) -> Message:
        """The first finished message from `start` on, or the first whose text matches."""

        def finished(f: dict) -> bool:
            if f["t"] != "message" or not f.get("final"):
                return False
            return match is None or match(self.chat(start)[f["id"]].text)

        frame = await self.wait(finished, what, start=start, timeout=timeout)
        return self.chat(start)[frame["id"]]

    async def ask(
        self, text: str, ident: str | None = None, timeout: float = TIMEOUT, **fields
    ) -> Message:
        """Sends a text and returns the finished message that answers it."""
        start = self.now()
        ident = await self.say(text, ident, **fields)

        def answers(f: dict) -> bool:
            return f["t"] == "message" and f.get("final") and f.get("reply_to") in (None, ident)

        what = f"a final message in reply to {brief(text, 60)}"
        frame = await self.wait(answers, what, start=start, timeout=timeout)
        return self.chat(start)[frame["id"]]

    async def echo(self, text: str, ident: str | None = None, **fields) -> Message:
        """Sends a text and expects the demo agent's answer to it: the conversation works."""
        message = await self.ask(text, ident, **fields)
        expect(message.text == f"You said: {text}", f"`You said: {brief(text, 60)}`", message.text)
        return message

    async def call(self, method: str, error: bool = False, **params) -> dict:
        """Calls a method (§9). Returns its result, or with `error` the error that is expected."""
        ident, start = fresh_id("call"), self.now()
        await self.send({"t": "call", "id": ident, "method": method, "params": params})

        def answers(f: dict) -> bool:
            return f["t"] == "result" and f["id"] == ident

        frame = await self.wait(answers, f"a result for {method}", start=start)
        field = "error" if error else "result"
        expect(isinstance(frame.get(field), dict), f"a result with {field} for {method}", frame)
        return frame[field]

    async def turn_over(self, start: int = 0, timeout: float = TIMEOUT) -> dict:
        """Waits for the indicator of the turn to go off."""
        return await self.wait(
            lambda f: f["t"] == "typing" and f.get("stop") is True,
            "typing with stop:true",
            start=start,
            timeout=timeout,
        )

    async def idle(self, start: int = 0) -> dict:
        return await self.wait(
            lambda f: f["t"] == "avatar" and f["state"] == "idle", "avatar idle", start=start
        )

    # Cards

    async def card(self, command: str, start: int | None = None) -> dict:
        """Has the demo agent show a card."""
        start = self.now() if start is None else start
        await self.say(command)
        return await self.wait("prompt", f"a prompt frame for {command}", start=start)

    async def answer(self, card_id: str, **fields) -> dict:
        """Answers a card. Returns its prompt_done, or the error."""
        start = self.now()
        await self.send({"t": "prompt", "prompt_id": card_id, **fields})

        def decides(f: dict) -> bool:
            return f["t"] == "error" or f["t"] == "prompt_done" and f["prompt_id"] == card_id

        return await self.wait(decides, f"prompt_done for {card_id}", start=start)

    # Files

    async def next_file(
        self, start: int = 0, timeout: float = 60.0, ident: str | None = None
    ) -> tuple[dict, bytes]:
        """The next complete file: its last frame, and the parts joined in the order they came."""

        def ends(f: dict) -> bool:
            return f["t"] == "media" and f["final"] and ident in (None, f["id"])

        last = await self.wait(ends, "a media frame with final:true", start=start, timeout=timeout)
        content = bytearray()
        for frame in self.frames[start:]:
            if frame["t"] == "media" and frame["id"] == last["id"]:
                content += base64.b64decode(frame.get("data") or "")
            if frame is last:
                break
        return last, bytes(content)

    async def upload(
        self, ident: str, content: bytes, size: int, order: Iterable[int] | None = None, **fields
    ) -> None:
        """Sends a file in parts of `size` bytes, in their order or another one."""
        pieces = split(content, size)
        for i in order or range(len(pieces)):
            await self.send(part(ident, pieces[i], i, len(pieces), **fields))

    async def agent_received(
        self,
        content: bytes,
        start: int,
        kind: str | None = None,
        filename: str | None = None,
        text: str | None = None,
    ) -> Message:
        """The demo agent reports the file that it got: size and hash must be those of `content`."""
        reply = await self.reply(
            start,
            lambda said: said.startswith("received "),
            timeout=60,
            what="`received …` from the demo agent",
        )
        found = RECEIVED.match(reply.text)
        expect(found, "received KIND FILENAME SIZE sha256:HEX", reply.text)
        expect(int(found["size"]) == len(content), f"{len(content)} bytes", reply.text)
        digest = hashlib.sha256(content).hexdigest()
        expect(found["sha256"] == digest, f"the hash {digest}", reply.text)
        for field, wanted in (("kind", kind), ("name", filename), ("text", text)):
            expect(wanted in (None, found[field]), f"{field} {wanted!r}", reply.text)
        return reply


RECEIVED = re.compile(
    r"received (?P<kind>\S+) (?P<name>.*?) ?(?P<size>\d+) sha256:(?P<sha256>[0-9a-f]{64})"
    r"(?: text:(?P<text>.*))?\Z",
    re.DOTALL,
)


def part(ident: str, data: bytes, index: int = 0, count: int = 1, **fields) -> dict:
    """A media frame with one part of a file. A field that is None is left out."""
    frame = {
        "t": "media",
        "id": ident,
        "kind": "document",
        "mime": "application/octet-stream",
        "filename": "data.bin",
        "data": b64(data),
        "part": index,
        "parts": count,
        **fields,
    }
    return {field: value for field, value in frame.items() if value is not None}


def split(content: bytes, size: int) -> list[bytes]:
    return [content[at : at + size] for at in range(0, len(content), size)]
