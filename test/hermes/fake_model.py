#!/usr/bin/env python3
"""A scripted model behind an OpenAI-compatible API, for tests: no network, no real model.

Serves GET /v1/models, POST /v1/chat/completions (streamed or not) and POST /v1/audio/transcriptions
on loopback, and prints its port on stdout (`--port 0` takes a free one). A transcription says how many
bytes it was made of.

The newest user message says what to answer, by words ``FM:name`` or ``FM:name(argument)``:

  FM:plain             a short text in 12 pieces          FM:text(abc)      exactly "abc"
  FM:slow(8)           a text that takes about 8 seconds   FM:long(6000)     about 6000 characters
  FM:echo              what the model saw of the message   FM:media(/a/b.png) a text that ends with MEDIA:/a/b.png
  FM:exec(cmd)         tool `terminal`, by default with a command that needs approval
  FM:clarify           tool `clarify` with two choices     FM:clarifyopen    the same without choices
  FM:cron(target)      tool that makes a cron job, every minute, delivered to target (default origin)
  FM:cron(target, abc) the same, for a job that says "abc" and runs twice
  FM:send(target)      tool `send_message`                 FM:tool(name {…}) any tool with these arguments
  FM:system            the end of the system prompt        FM:history        how many messages it was sent
  FM:hang(60)          no answer for 60 seconds            FM:fail           HTTP 500

Several words in a row are steps of one turn: a tool word is a call, and the word after it answers the
tool's result (``FM:exec(date) FM:text(done)``). Without a word left, a result is answered by
``tool said: <result>``; a message with no word at all by a short greeting.

Parts of a message that are not text are described as ``[image_url image/png 70 bytes sha256=<hex>]``,
so that a test sees what reached the model, and whether it is whole.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import binascii
import hashlib
import json
import re
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

MODEL = "fake-1"
WORD = re.compile(r"FM:([a-z]+)(?:\((.*?)\)(?=\s|$|\]|\"))?", re.S)
DANGEROUS = "rm -rf /tmp/x-fake-model"


@dataclass
class Plan:
    """What one request is answered with: a text in pieces, a tool call, or an HTTP status."""

    text: str = ""
    pieces: int = 6
    delay: float | None = None
    wait: float = 0
    tool: str = ""
    args: dict[str, Any] = field(default_factory=dict)
    status: int = 200


def describe(part: dict[str, Any]) -> str:
    """A part that is not text, in brackets: kind, media type, size, hash."""
    kind = str(part.get("type", "?"))
    value = part.get(kind)
    url = value.get("url") or value.get("data") or "" if isinstance(value, dict) else value or ""
    head, comma, data = str(url).partition(",")
    if not (comma and head.endswith(";base64")):
        return f"[{kind} {str(url)[:200]}]"
    try:
        raw = base64.b64decode(data, validate=True)
    except binascii.Error:
        return f"[{kind} undecodable]"
    mime = head.removeprefix("data:").removesuffix(";base64")
    return f"[{kind} {mime} {len(raw)} bytes sha256={hashlib.sha256(raw).hexdigest()}]"


def flat(content: Any) -> str:
    """The content of a message as one text."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(p.get("text", "") if p.get("type") == "text" else describe(p) for p in content)


def lines(size: int) -> str:
    """Numbered lines, about size characters together."""
    line = "Line {:04d}: the quick brown fox jumps over the lazy dog."
    return "\n".join(line.format(i + 1) for i in range(max(1, size // 55)))


def words(text: str) -> list[tuple[str, str]]:
    """The last row of FM words: a quoted earlier message in front of it does not count."""
    row: list[re.Match[str]] = []
    for hit in WORD.finditer(text):
        if row and text[row[-1].end() : hit.start()].strip():
            row = []
        row.append(hit)
    return [(hit[1], (hit[2] or "").strip()) for hit in row]


def tool_plan(tools: dict[str, Any], name: str, args: dict[str, Any]) -> Plan:
    """A tool call. Newer Hermes offers seldom used tools only through its bridge tool `tool_call`."""
    if name not in tools and "tool_call" in tools:
        return Plan(tool="tool_call", args={"name": name, "arguments": args})
    return Plan(tool=name, args=args)


def clarify_args(tools: dict[str, Any], question: str, choices: list[str] | None) -> dict[str, Any]:
    """Newer Hermes wants questions=[{question, choices}], older question and choices."""
    one = {"question": question, **({"choices": choices} if choices else {})}
    return {"questions": [one]} if "questions" in tools.get("clarify", {}).get("properties", {}) else one


def decide(messages: list[dict[str, Any]], tools: dict[str, Any]) -> Plan:
    """Picks the answer; tools maps each offered tool's name to its JSON schema."""
    at = max((i for i, m in enumerate(messages) if m.get("role") == "user"), default=-1)
    text = flat(messages[at].get("content")) if at >= 0 else ""
    row = words(text)
    results = [flat(m.get("content")) for m in messages[at + 1 :] if m.get("role") == "tool"]
    if len(results) >= max(1, len(row)):
        return Plan("tool said: " + results[-1][:300])
    if not row:
        return Plan("Hello from the fake model.")
    name, arg = row[len(results)]
    match name:
        case "plain":
            return Plan("Hello from the fake model. This is a plain answer in several deltas.", pieces=12)
        case "text":
            return Plan(arg or "text", pieces=3, delay=0.02)
        case "slow":
            return Plan(lines(900), pieces=max(4, int(float(arg or 8) * 4)), delay=0.25)
        case "long":
            return Plan(lines(int(arg or 6000)), pieces=40, delay=0.02)
        case "echo":
            return Plan("I saw: " + text[:3000])
        case "media":
            return Plan("Here is your file.\n\nMEDIA:" + arg)
        case "system":
            return Plan("system: " + "".join(flat(m.get("content")) for m in messages if m.get("role") == "system")[-1500:])
        case "history":
            return Plan("messages: %d" % sum(m.get("role") != "system" for m in messages))
        case "hang":
            return Plan("late", wait=float(arg or 60))
        case "fail":
            return Plan(status=500)
        case "status":
            return Plan(status=int(arg or 400))
    if not tools:  # a side call, for a title or the like
        return Plan("Side call title")
    match name:
        case "exec":
            return tool_plan(tools, "terminal", {"command": arg or DANGEROUS})
        case "clarify":
            return tool_plan(tools, "clarify", clarify_args(tools, "Which color?", ["Red", "Blue"]))
        case "clarifyopen":
            return tool_plan(tools, "clarify", clarify_args(tools, "What is your name?", None))
        case "cron":
            target, twice, said = arg.partition(", ")
            job = {"action": "create", "prompt": f"FM:text({said or 'cron says hi'})", "schedule": "every 1m", "name": "fake cron"}
            if twice:
                job["repeat"] = 2
            old = "cronjob" in tools or "tool_call" not in tools
            return tool_plan(tools, "cronjob" if old else "cronjob_manage", {**job, "deliver": target or "origin"})
        case "send":
            return tool_plan(tools, "send_message", {"action": "send", "target": arg, "message": "sent by tool"})
        case "tool":
            tool, _, args = arg.partition(" ")
            return tool_plan(tools, tool, json.loads(args or "{}"))
    return Plan("unknown word " + name)


def split(text: str, pieces: int) -> Iterator[str]:
    step = max(1, -(-len(text) // max(1, pieces)))
    for i in range(0, len(text), step):
        yield text[i : i + step]


class FakeModel:
    """The HTTP handlers. Every request and every answer cut off by the client is a line of the log."""

    def __init__(self, log: str | None, delay: float) -> None:
        self.log, self.delay = log, delay

    def note(self, **line: Any) -> None:
        if self.log:
            with open(self.log, "a", encoding="utf-8") as out:
                out.write(json.dumps({"time": time.time(), **line}, ensure_ascii=False) + "\n")

    async def models(self, _: web.Request) -> web.Response:
        one = {"id": MODEL, "object": "model", "created": 0, "owned_by": "fake", "context_length": 200000}
        return web.json_response({"object": "list", "data": [one]})

    async def transcribe(self, request: web.Request) -> web.Response:
        form = await request.post()
        sound = form["file"]
        data = sound.file.read() if isinstance(sound, web.FileField) else b""
        text = f"transcript of {len(data)} bytes"
        self.note(kind="transcription", reply=text)
        if form.get("response_format") == "text":
            return web.Response(text=text)
        return web.json_response({"text": text})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        messages = body.get("messages", [])
        functions = [t.get("function", {}) for t in body.get("tools") or []]
        tools = {f.get("name"): f.get("parameters") or {} for f in functions}
        plan = decide(messages, tools)
        rid = "chatcmpl-" + uuid.uuid4().hex[:12]
        self.note(kind="chat", id=rid, stream=bool(body.get("stream")), tools=list(tools), reply=plan.text, call=plan.tool,
                  messages=[{"role": m.get("role"), "text": flat(m.get("content"))} for m in messages])
        if plan.status != 200:
            return web.json_response({"error": {"message": "fake failure", "type": "server_error"}}, status=plan.status)
        try:
            await asyncio.sleep(plan.wait)
            if body.get("stream"):
                return await self.stream(request, rid, plan)
            return web.json_response(self.whole(rid, plan))
        except (ConnectionResetError, asyncio.CancelledError):
            self.note(kind="aborted", id=rid)
            raise

    @staticmethod
    def call(plan: Plan) -> dict[str, Any]:
        function = {"name": plan.tool, "arguments": json.dumps(plan.args)}
        return {"id": "call_" + uuid.uuid4().hex[:10], "type": "function", "function": function}

    def whole(self, rid: str, plan: Plan) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": plan.text}
        if plan.tool:
            message = {"role": "assistant", "content": None, "tool_calls": [self.call(plan)]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if plan.tool else "stop"}
        return {"id": rid, "object": "chat.completion", "created": int(time.time()), "model": MODEL,
                "choices": [choice], "usage": USAGE}

    async def stream(self, request: web.Request, rid: str, plan: Plan) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await response.prepare(request)

        async def chunk(delta: dict[str, Any], finish: str | None = None, **extra: Any) -> None:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            event = {"id": rid, "object": "chat.completion.chunk", "created": int(time.time()), "model": MODEL,
                     "choices": [choice], **extra}
            await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")

        await chunk({"role": "assistant", "content": ""})
        if plan.tool:
            await chunk({"tool_calls": [{"index": 0, **self.call(plan)}]})
        for piece in split(plan.text, plan.pieces):
            await chunk({"content": piece})
            await asyncio.sleep(self.delay if plan.delay is None else plan.delay)
        await chunk({}, "tool_calls" if plan.tool else "stop", usage=USAGE)
        await response.write(b"data: [DONE]\n\n")
        return response

    def app(self) -> web.Application:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_get("/v1/models", self.models)
        app.router.add_post("/v1/chat/completions", self.chat)
        app.router.add_post("/v1/audio/transcriptions", self.transcribe)
        return app


USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


async def serve(port: int, model: FakeModel) -> None:
    runner = web.AppRunner(model.app(), access_log=None, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="Scripted OpenAI-compatible model server for tests.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--log", help="append one JSON line per request to this file")
    parser.add_argument("--delay", type=float, default=0.1, help="seconds between streamed pieces")
    args = parser.parse_args()
    try:
        asyncio.run(serve(args.port, FakeModel(args.log, args.delay)))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
