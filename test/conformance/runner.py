"""Runs cases side by side and turns each into a result."""

from __future__ import annotations

import asyncio
import time
import traceback
from dataclasses import asdict, dataclass
from typing import Iterable

from cases import APPROVED, GROUPS, Case, Run
from expect import Fail, Skip, brief
from server import Server

CASE_TIMEOUT = 170.0  # seconds: no case may hang the suite


@dataclass
class Result:
    name: str
    group: str
    about: str
    outcome: str  # "ok", "FAIL" or "skip"
    detail: str = ""
    seconds: float = 0.0

    def line(self) -> str:
        return f"{self.outcome} {self.name}" + (f": {self.detail}" if self.detail else "")

    def to_json(self) -> dict:
        return asdict(self)


class SharedInstance:
    """The server for all cases without settings. It is started again if a case made it exit."""

    def __init__(self, command: str):
        self._command = command
        self._server: Server | None = None
        self._lock = asyncio.Lock()

    async def get(self) -> Server:
        async with self._lock:
            if self._server is None:
                server = Server(self._command, APPROVED)
                try:
                    await server.start()
                except BaseException:
                    await server.remove()
                    raise
                self._server = server
            elif self._server.exited():
                await self._server.start()
            return self._server

    async def remove(self) -> None:
        if self._server is not None:
            await self._server.remove()


class Runner:
    def __init__(self, command: str, jobs: int):
        self._command = command
        self._shared = SharedInstance(command)
        self._slots = asyncio.Semaphore(jobs)
        self._one_heavy = asyncio.Lock()

    async def run_all(self, chosen: list[Case]) -> list[Result]:
        """Runs the cases and prints a line for each, group by group, slow ones last."""
        try:
            await self._shared.get()
        except (Fail, OSError) as err:
            print(f"FAIL {chosen[0].name}: the server does not start, so no case ran: {err}")
            return [failed(case, "the server does not start") for case in chosen]
        # Slow cases mostly wait. They are created first, so that they begin at once.
        by_waiting = sorted(chosen, key=lambda case: not case.slow)
        tasks = {case.name: asyncio.create_task(self._run(case)) for case in by_waiting}
        results: list[Result] = []
        try:
            for group in GROUPS:
                members = [case for case in chosen if case.group == group]
                if members:
                    print(f"# {group}", flush=True)
                for case in sorted(members, key=lambda case: case.slow):
                    result = await tasks[case.name]
                    print(result.line(), flush=True)
                    results.append(result)
        finally:
            await cancel(tasks.values())
            await self._shared.remove()
        return results

    async def _run(self, case: Case) -> Result:
        if case.slow:
            return await self._timed(case)
        if case.heavy:
            async with self._one_heavy, self._slots:
                return await self._timed(case)
        async with self._slots:
            return await self._timed(case)

    async def _timed(self, case: Case) -> Result:
        began = time.monotonic()
        result = Result(case.name, case.group, case.about, "ok")
        try:
            await asyncio.wait_for(self._on_its_instance(case), CASE_TIMEOUT)
        except Skip as reason:
            result.outcome, result.detail = "skip", str(reason)
        except Fail as err:
            result.outcome, result.detail = "FAIL", str(err)
        except TimeoutError:
            result.outcome, result.detail = "FAIL", f"not finished after {CASE_TIMEOUT:g} s"
        except Exception as err:  # a bug of the suite, or something that no case foresaw
            place = traceback.extract_tb(err.__traceback__)[-1]
            file = place.filename.rsplit("/", 1)[-1]
            result.outcome = "FAIL"
            result.detail = f"unexpected {brief(repr(err))} at {file}:{place.lineno}"
        result.seconds = round(time.monotonic() - began, 2)
        return result

    async def _on_its_instance(self, case: Case) -> None:
        if case.settings is None:
            await run_on(case, await self._shared.get())
            return
        server = Server(self._command, case.settings)
        try:
            await server.start()
            await run_on(case, server)
        finally:
            await server.remove()


async def run_on(case: Case, server: Server) -> None:
    run = Run(server)
    try:
        await case.body(run)
        run.check_invariants()
    finally:
        await run.close()


async def cancel(tasks: Iterable[asyncio.Task]) -> None:
    waiting = list(tasks)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


def failed(case: Case, detail: str) -> Result:
    return Result(case.name, case.group, case.about, "FAIL", detail)
