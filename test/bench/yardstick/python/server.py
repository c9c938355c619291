"""A minimal server for phones and a gateway with aiohttp, written to be measured beside the real one and for nothing else.
It keeps nothing on a disk, asks nobody for rights and sends nothing twice. Arguments: [--uvloop] host:port

Without --uvloop it runs on the event loop of Python, as Hermes' gateway and its adapters do."""

import asyncio
import json
import sys
from datetime import datetime, timezone

from aiohttp import WSMsgType, web

PING_EVERY = 25
NO_MESSAGE = "0" * 18
devices = {}
gateway = None
turns = 0


def ready(id):
    return {
        "t": "ready",
        "session": "mobile:" + id,
        "capabilities": {
            "text": True, "audio": True, "media": True, "prompt": True, "edit": True, "typing": True, "avatar": True, "deliver": True,
            "resume": True, "accepted": True, "stop": True, "delta": True, "tool": False, "media_url": True, "push": False, "shared": False,
            "call": ["devices.list"], "max_media_bytes": 8388608, "max_frame_bytes": 16777216, "chunk_bytes": 3145728, "max_parts": 2048,
            "min_chunk_bytes": 4096, "max_uploads": 8, "prompt_seconds": 300,
        },
        "protocol": 1,
        "server": "yardstick/0.00000",
        "approved": True,
        "agent": "online",
        "resume": {"epoch": "000000000000", "from": 1, "to": 0, "lost": False},
    }  # fmt: skip


encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def message(id, text, **more):
    return {"t": "message", "id": id, "text": text, **more}


class Device:
    """A connection and the turn that runs."""

    __slots__ = ("socket", "id", "asked", "message", "begun", "seq")

    def __init__(self, socket):
        self.socket = socket
        self.id = None
        self.asked = ""
        self.message = NO_MESSAGE
        self.begun = False
        self.seq = 0

    async def send(self, frame):
        await self.socket.send_str(encode(frame))

    async def text(self, f):
        kind = f["t"]
        if kind == "hello":
            self.id = f["device"]["id"]
            devices[self.id] = self
            await self.send(ready(self.id))
        elif kind == "ping":
            now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            await self.send({"t": "pong", "id": f["id"], "time": now})
        elif kind == "text":
            await self.ask(f)
        elif kind == "deliver":
            await deliver(f)
            await self.send({"t": "delivered", "id": f["id"], "queued": False})

    async def ask(self, f):
        global turns
        turns += 1
        mid = f"m{turns}-00000000"
        self.asked, self.message, self.begun = f["id"], f"{turns:018x}", False
        await self.send({"t": "accepted", "id": f["id"], "duplicate": False, "queued": False})
        await self.send({"t": "avatar", "state": "thinking"})
        await self.send({"t": "typing"})
        source = {
            "platform": "relay", "chat_id": self.id, "chat_type": "dm", "chat_name": "Bench", "user_id": self.id, "user_name": "Bench",
            "thread_id": None, "chat_topic": None,
        }  # fmt: skip
        event = {"text": f["text"], "message_type": "text", "message_id": mid, "source": source}
        await gateway.send_str(encode({"type": "inbound", "bufferId": mid, "event": event}) + "\n")

    async def act(self, a):
        """Shows what the gateway did. Marks and repeated typing are not shown."""
        if a["op"] == "draft":
            if not self.begun:
                self.begun = True
                await self.send({"t": "avatar", "state": "speaking"})
            await self.send(message(self.message, a["content"], edit=True, chunk={"index": 0, "total": 1}, final=False))
        elif a["op"] == "send":
            self.seq += 1
            chunk = {"index": 0, "total": 1}
            await self.send(message(self.message, a["content"], edit=True, chunk=chunk, final=True, reply_to=self.asked, seq=self.seq))
            await self.send({"t": "typing", "stop": True})


async def deliver(f):
    if f["to"] != "all":
        if d := devices.get(f["to"]):
            d.seq += 1
            await d.send(message(d.message, f["text"], chunk={"index": 0, "total": 1}, final=True, seq=d.seq))
        return
    frame = encode(message(NO_MESSAGE, f["text"], chunk={"index": 0, "total": 1}, final=True, seq=1)).encode()
    for d in list(devices.values()):
        if d.id != "sender":
            await d.socket.send_frame(frame, WSMsgType.TEXT)


async def device(request):
    socket = web.WebSocketResponse(heartbeat=PING_EVERY, compress=False, max_msg_size=16 << 20)
    await socket.prepare(request)
    d = Device(socket)
    try:
        async for m in socket:
            if m.type is not WSMsgType.TEXT:
                break
            await d.text(json.loads(m.data))
    finally:
        if devices.get(d.id) is d:
            del devices[d.id]
    return socket


async def relay(request):
    global gateway
    socket = web.WebSocketResponse(heartbeat=PING_EVERY, compress=False, max_msg_size=16 << 20)
    await socket.prepare(request)
    async for m in socket:
        for line in m.data.splitlines():
            f = json.loads(line)
            if f["type"] == "hello":
                gateway = socket
                await socket.send_str('{"type":"descriptor","descriptor":{"platform":"relay"}}\n')
            elif f["type"] == "outbound":
                d = devices.get(f["action"]["chat_id"])
                if d:
                    await d.act(f["action"])
                result = {"type": "outbound_result", "requestId": f["requestId"], "result": {"success": d is not None}}
                await socket.send_str(encode(result) + "\n")
    return socket


async def main():
    app = web.Application()
    app.router.add_get("/ws", device)
    app.router.add_get("/relay", relay)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    host, port = sys.argv[-1].split(":")
    await web.TCPSite(runner, host, int(port), backlog=4096).start()
    await asyncio.Event().wait()


if "--uvloop" in sys.argv:
    import uvloop

    uvloop.run(main())
else:
    asyncio.run(main())
