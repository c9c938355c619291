"""The server under test: a process that is configured through its environment.

Nothing here knows how the server is built. A command line starts it, and after that the suite uses
only its WebSocket, its links and its subcommands.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import websockets
from websockets.asyncio.client import connect

from expect import Fail, brief, fresh_token

START_TIMEOUT = 40.0
STOP_TIMEOUT = 15.0


class Server:
    """One instance with a port, a token, a data folder and a Hermes home of its own."""

    def __init__(self, command: str, settings: dict[str, str | None] | None = None):
        self.command_line = shlex.split(command)
        self.settings = dict(settings or {})
        self.token = fresh_token()
        self.port = unused_port()
        self.root = Path(tempfile.mkdtemp(prefix="conformance-"))
        self.data = self.root / "data"
        self.home = self.root / "hermes"
        for folder in (self.data, self.home):
            folder.mkdir()
        self.process: asyncio.subprocess.Process | None = None
        self.stopped_by_suite = False

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}{self.settings.get('MOBILE_PATH', '/ws')}"

    def environment(self) -> dict[str, str]:
        """The caller's environment without its own settings of a server, and with ours."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MOBILE_", "HERMES_"))
        }
        own = {
            "MOBILE_HOST": "127.0.0.1",
            "MOBILE_PORT": str(self.port),
            "MOBILE_PATH": "/ws",
            "MOBILE_TOKEN": self.token,
            "MOBILE_DATA": str(self.data),
            "HERMES_HOME": str(self.home),
        }
        merged = inherited | own | self.settings
        return {name: value for name, value in merged.items() if value is not None}

    # Process

    async def start(self) -> Server:
        """Starts the process and waits until it accepts a WebSocket."""
        self.stopped_by_suite = False
        with open(self.root / "server.log", "ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self.command_line,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment(),
                start_new_session=True,
            )
        deadline = time.monotonic() + START_TIMEOUT
        problem: Exception | None = None
        while time.monotonic() < deadline:
            if self.process.returncode is not None:
                raise Fail(
                    f"expected the server to start; it exited with {self.process.returncode}:"
                    f" {self.last_lines()}"
                )
            try:
                async with connect(
                    self.url, proxy=None, compression=None, open_timeout=5, close_timeout=1
                ):
                    return self
            except (OSError, TimeoutError, websockets.WebSocketException) as err:
                problem = err
            await asyncio.sleep(0.05)
        await self.kill()
        raise Fail(f"expected a WebSocket within {START_TIMEOUT:g} s of the start; got {problem!r}")

    async def kill(self) -> None:
        """Sends SIGKILL: like a power failure, the program flushes nothing."""
        if self.process is not None:
            self._signal(signal.SIGKILL)
            await self.process.wait()

    async def stop(self) -> int | None:
        """Sends SIGTERM. Returns the exit status, or None if the process had to be killed."""
        if self.process is None or self.process.returncode is not None:
            return None if self.process is None else self.process.returncode
        self.stopped_by_suite = True
        self._signal(signal.SIGTERM)
        try:
            return await asyncio.wait_for(self.process.wait(), STOP_TIMEOUT)
        except TimeoutError:
            await self.kill()
            return None

    async def crash_and_start(self) -> None:
        await self.kill()
        await self.start()

    async def remove(self) -> None:
        """Ends the process and deletes its folders."""
        await self.kill()
        await asyncio.to_thread(shutil.rmtree, self.root, True)

    def exited(self) -> bool:
        return self.process is not None and self.process.returncode is not None

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    # Output

    def log(self) -> str:
        try:
            return (self.root / "server.log").read_text("utf-8", "replace")
        except OSError:
            return ""

    def last_lines(self) -> str:
        return brief(" | ".join(self.log().strip().splitlines()[-3:]), 300)

    def memory(self) -> int | None:
        """Private memory in bytes of all processes of the instance, where /proc tells it."""
        total = 0
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if os.getpgid(int(folder.name)) != self.process.pid:
                    continue
                found = re.search(r"RssAnon:\s+(\d+) kB", (folder / "status").read_text())
            except OSError:
                continue  # the process ended meanwhile
            total += int(found[1]) * 1024 if found else 0
        return total or None

    # Other ways in

    async def cli(self, *args: str, timeout: float = 20.0) -> tuple[int, str]:
        """Runs a subcommand with the same settings. Returns exit status and combined output.

        A command that is still running after the timeout is killed: `pair` waits for the phone.
        """
        program = self.command_line[:1]
        if "serve" in self.command_line:
            program = self.command_line[: self.command_line.index("serve")]
        process = await asyncio.create_subprocess_exec(
            *program,
            *args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self.environment(),
            start_new_session=True,
        )
        output = bytearray()

        async def collect() -> None:
            while data := await process.stdout.read(1 << 16):
                output.extend(data)
            await process.wait()

        try:
            await asyncio.wait_for(collect(), timeout)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        return process.returncode, output.decode("utf-8", "replace")

    async def http(self, link: str, headers: dict | None = None) -> tuple[int, dict, bytes]:
        """Sends a GET for the path and query of a link to this instance, whatever its host is."""
        parts = urllib.parse.urlsplit(link)
        target = urllib.parse.urlunsplit(
            ("http", f"127.0.0.1:{self.port}", parts.path, parts.query, "")
        )
        request = urllib.request.Request(target, headers=headers or {})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

        def get() -> tuple[int, dict, bytes]:
            try:
                answer = opener.open(request, timeout=20)
            except urllib.error.HTTPError as err:
                answer = err
            with answer:
                return answer.status, dict(answer.headers), answer.read()

        return await asyncio.to_thread(get)


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
