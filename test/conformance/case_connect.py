"""Connecting: the upgrade, hello, ready, and every way to be rejected."""

from __future__ import annotations

import asyncio
import json
import time

from websockets.asyncio.client import connect as ws_connect

from cases import CORE, FULL, Run, case
from expect import MIB, Skip, TIMEOUT, expect, fresh_id, fresh_token


@case(CORE)
async def hello_is_answered_by_ready(run: Run):
    """§2: ready answers hello, before any other frame, and names the session `mobile:<device.id>`."""
    phone = await run.connected("tel-" + fresh_id())
    expect(
        phone.ready["session"] == f"mobile:{phone.id}", f"session mobile:{phone.id}", phone.ready
    )
    expect(
        phone.frames[phone.since_connect]["t"] == "ready",
        "ready as the first frame",
        phone.frames[phone.since_connect],
    )


@case(CORE)
async def hello_as_each_sketch_says_it(run: Run):
    """§2: the hello of each small client in doc/clients.md is enough: only token and device.id are
    needed.
    """
    for more in (
        {"name": "Телефон", "platform": "android"},
        {"name": "iPhone", "platform": "ios"},
        {"name": "Телефон"},
        {},
    ):
        phone = run.phone()
        await phone.open()
        await phone.send(
            {"t": "hello", "token": run.server.token, "device": {"id": phone.id, **more}}
        )
        f = await phone.wait(lambda f: f["t"] in ("ready", "error"), "ready")
        expect(f["t"] == "ready" and f["session"] == f"mobile:{phone.id}", f"ready for {more}", f)


@case(CORE, {"MOBILE_AVATAR_URL": "https://avatar.example/page?v=1"})
async def avatar_url_comes_in_ready(run: Run):
    """§2: ready.avatar_url is the owner's avatar page, MOBILE_AVATAR_URL."""
    phone = await run.connected()
    expect(
        phone.ready.get("avatar_url") == "https://avatar.example/page?v=1",
        "the configured avatar_url",
        phone.ready,
    )


@case(CORE)
async def no_avatar_url_by_default(run: Run):
    """§2: without an avatar page ready names none, and the app shows its own."""
    phone = await run.connected()
    expect(
        not phone.ready.get("avatar_url"),
        "no avatar_url, an empty one or null",
        phone.ready.get("avatar_url"),
    )


@case(CORE)
async def capabilities_name_the_media_limit(run: Run):
    """§2 and §11: capabilities say what the agent can do, and max_media_bytes the limit of a file."""
    caps = (await run.connected()).ready["capabilities"]
    expect(
        caps.get("max_media_bytes") == 8 * MIB,
        "max_media_bytes 8388608",
        caps.get("max_media_bytes"),
    )
    for name in ("text", "audio", "media", "prompt", "edit", "typing", "avatar"):
        expect(caps.get(name) is True, f"capability {name} true with the demo agent", caps)


@case(FULL)
async def capabilities_are_complete(run: Run):
    """§2 and §11: capabilities hold all booleans, all limits, and the list of calls."""
    caps = (await run.connected()).ready["capabilities"]
    for name in ("deliver", "resume", "accepted", "stop", "delta", "tool", "media_url"):
        expect(caps.get(name) is True, f"capability {name} true with the demo agent", caps)
    wanted = {
        "max_frame_bytes": 16 * MIB,
        "chunk_bytes": 3 * MIB,
        "max_parts": 2048,
        "min_chunk_bytes": 4096,
        "max_uploads": 8,
        "prompt_seconds": 300,
    }
    for name, value in wanted.items():
        expect(caps.get(name) == value, f"{name} {value}", caps.get(name))
    expect(isinstance(caps.get("call", []), list), "call to be a list or absent", caps.get("call"))


@case(FULL)
async def ready_tells_version_approval_and_epoch(run: Run):
    """§2: ready has protocol, server, approved, agent and resume. With nothing to replay, from is
    larger than to.
    """
    r = (await run.connected()).ready
    expect(r.get("protocol") == 1, "protocol 1", r)
    expect(
        str(r.get("server", "")).startswith("hermes-mobile/"),
        "server hermes-mobile/<version>",
        r.get("server"),
    )
    expect(r.get("approved") is True, "approved true", r)
    expect(r.get("agent") == "online", "agent online", r)
    resume = r.get("resume") or {}
    expect(isinstance(resume.get("epoch"), str) and resume["epoch"], "resume.epoch", r)
    expect(
        isinstance(resume.get("from"), int) and isinstance(resume.get("to"), int),
        "resume.from and resume.to, integers",
        resume,
    )
    expect(
        resume["from"] > resume["to"] and resume.get("lost") is False,
        "from > to and lost false for a new device",
        resume,
    )
    expect("token" not in r, "no token in ready without pair", r)


@case(CORE)
async def first_frame_must_be_hello(run: Run):
    """§1: anything but hello as the first frame is an error, closes the connection, and never
    reaches the agent.
    """
    phone = await run.phone().open()
    await phone.send({"t": "text", "id": "m1", "text": "hello there"})
    await phone.wait("error", "an error frame")
    await phone.closed_with()
    expect(not phone.chat(), "nothing for the agent", phone.recent())


@case(FULL)
async def first_frame_refusals_have_code_and_close(run: Run):
    """§1: the error for a wrong first frame is bad_frame, the close code 1008."""
    for first in ('{"t":"ping","id":"1"}', "not json", "[]", b"\x00\x01", '{"t":"hello"} {}'):
        phone = await run.phone().open()
        await phone.send(first)
        await phone.error("bad_frame")
        await phone.closed_with(1008)


@case(CORE, own=True)
async def wrong_token_is_auth_failed_1008(run: Run):
    """§2: a wrong token gets auth_failed and close 1008. The right one works afterwards."""
    await run.phone(token=fresh_token()).rejected()
    await run.phone(
        token=run.server.token[:-1] + ("0" if run.server.token[-1] != "0" else "1")
    ).rejected()
    await run.phone(token=run.server.token.upper() + "x").rejected()
    phone = run.phone()
    await phone.rejected({"t": "hello", "device": {"id": phone.id}}, ("auth_failed", "bad_frame"))
    await phone.rejected(
        {"t": "hello", "token": "", "device": {"id": phone.id}}, ("auth_failed", "bad_frame")
    )
    await phone.rejected(
        {"t": "hello", "token": [run.server.token], "device": {"id": phone.id}},
        ("auth_failed", "bad_frame"),
    )
    await phone.connect()


@case(CORE)
async def token_in_the_address_is_refused(run: Run):
    """§1: `?token=` in the URL gets HTTP 400, with a body that names hello and does not repeat the
    token.
    """
    _, status, body = await run.raw(f"/ws?token={run.server.token}")
    expect(status == 400, "HTTP 400", status)
    expect(b"hello" in body, "a body that says to use hello", body.decode("utf-8", "replace"))
    expect(run.server.token.encode() not in body, "the token not repeated", "the token in the body")


@case(FULL, own=True)
async def device_id_has_a_form(run: Run):
    """§2: device.id and user.id are 1 to 128 characters of A-Z a-z 0-9 . _ - : @. Others get
    bad_frame and 1008.
    """
    for good in ("A.z_9-:@" + fresh_id(), (fresh_id() + "x" * 128)[:128]):
        phone = await run.connected(good)
        expect(
            phone.ready["session"] == "mobile:" + good, "the session of that device", phone.ready
        )
    for bad in ("", "x" * 129, "a b", "../x", "é", "a\n", 7, None):
        await run.phone().rejected(
            {"t": "hello", "token": run.server.token, "device": {"id": bad}}, ("bad_frame",)
        )
    await run.phone().rejected({"t": "hello", "token": run.server.token}, ("bad_frame",))
    for bad in ("x" * 129, "a b", "é", 7):
        phone = run.phone()
        await phone.rejected(
            {
                "t": "hello",
                "token": run.server.token,
                "device": {"id": phone.id},
                "user": {"id": bad},
            },
            ("bad_frame",),
        )


@case(FULL)
async def names_of_a_device_are_cut(run: Run):
    """§2: names of any content are accepted, in a hello of up to 4 KiB. They are shortened to 128
    characters, without control characters.
    """
    for name in ("x" * 700, "two\nlines\u0000\u001b[31m", "", "Телефон 📱" * 40):
        phone = run.phone(hello={"user": {"id": fresh_id("u"), "name": name}})
        phone.hello_extra["device"] = {"id": phone.id, "name": name, "platform": name, "app": name}
        size = len(json.dumps(phone.hello(), ensure_ascii=False).encode())
        expect(size <= 4096, "a hello within the limit", size)
        await phone.connect()
        await phone.echo("hello")
        if "devices.list" not in phone.ready["capabilities"].get("call", []):
            continue
        # Such a server shows the name that it keeps.
        shown = "".join(c for c in name if c.isprintable())[:128]
        listed = await phone.call("devices.list")
        kept = [entry.get("name", "") for entry in listed["devices"] if entry["id"] == phone.id]
        expect(kept == [shown], f"the name cut to {shown!r}", kept)


@case(FULL)
async def a_second_hello_is_a_bad_frame(run: Run):
    """§1: a second hello gets bad_frame. Connection and device stay what they were."""
    phone, other = await run.connected(), run.phone()
    for frame in (phone.hello(), other.hello(), {**phone.hello(), "token": fresh_token()}):
        start = phone.now()
        await phone.send(frame)
        await phone.error("bad_frame", start=start)
    await phone.echo("still me")
    expect(sum(f["t"] == "ready" for f in phone.frames) == 1, "one ready", phone.recent())


@case(FULL)
async def hello_ignores_what_it_does_not_know(run: Run):
    """§1 and §2: unknown fields of hello and unknown names in accept change nothing."""
    phone = run.phone(
        hello={"accept": ["delta", "holograms", ""], "x-new": {"deep": [1, None]}, "trace": "abc"}
    )
    phone.accept = ("delta",)
    await phone.connect()
    await phone.echo("still here")


@case(FULL, slow=True)
async def hello_has_ten_seconds(run: Run):
    """§1: without a hello within 10 seconds the server sends bad_frame and closes with 1013, which
    means: retry.
    """
    phone = await run.phone().open()
    began = time.monotonic()
    await phone.error("bad_frame", timeout=25)
    await phone.closed_with(1013)
    took = time.monotonic() - began
    expect(5 <= took <= 20, "the end after about 10 s", f"{took:.1f} s")


@case(FULL)
async def newer_connection_replaces_the_older(run: Run):
    """§2: a device has one connection. A newer one closes the older with 4409."""
    old = await run.connected()
    new = await run.connected(old.id)
    await old.closed_with(4409)
    await new.echo("which one am I")


@case(FULL)
async def other_paths_are_not_the_endpoint(run: Run):
    """§1: only MOBILE_PATH upgrades to a WebSocket. A plain GET of it gets a 4xx status."""
    _, status, _ = await run.raw("/nowhere-" + fresh_id())
    expect(status != 101, "no upgrade elsewhere", status)
    status, _, _ = await run.server.http("/ws")
    expect(400 <= status < 500, "a 4xx for a plain GET", status)


@case(CORE, {"MOBILE_PATH": "/agent/phone"})
async def the_path_is_configurable(run: Run):
    """§1: MOBILE_PATH moves the endpoint."""
    m = await (await run.connected()).ask("at another path")
    expect(m.text == "You said: at another path", "the reply", m.text)


@case(CORE)
async def compression_may_be_offered(run: Run):
    """§1: a client may offer permessage-deflate, as browsers and OkHttp do."""
    async with ws_connect(run.server.url, proxy=None, compression="deflate", max_size=None) as ws:
        await ws.send(
            json.dumps({"t": "hello", "token": run.server.token, "device": {"id": fresh_id("dev")}})
        )
        expect(
            json.loads(await asyncio.wait_for(ws.recv(), TIMEOUT))["t"] == "ready",
            "ready",
            "something else",
        )
        await ws.send(json.dumps({"t": "text", "id": "m1", "text": "squeeze " * 50 + "me"}))
        async with asyncio.timeout(TIMEOUT):
            while True:
                f = json.loads(await ws.recv())
                if f["t"] == "message" and f["final"]:
                    break
        expect(f["text"] == "You said: " + "squeeze " * 50 + "me", "the text", f["text"])


@case(CORE)
async def fragmented_messages_are_put_together(run: Run):
    """§1, RFC 6455 §5.4: a message may arrive in fragments, cut inside a character, with a ping in
    between.
    """
    s, _, _ = await run.raw()
    await s.hello(run.server, fresh_id("dev"))
    whole = json.dumps(
        {"t": "text", "id": "m1", "text": "в нескольких кадрах"}, ensure_ascii=False
    ).encode()
    cut = whole.index("в".encode()) + 1  # inside a character
    s.frame(1, whole[:cut], fin=False)
    s.frame(9, b"are you there")
    s.frame(0, whole[cut : cut + 5], fin=False)
    s.frame(0, whole[cut + 5 :])
    while True:
        f = await s.wait("message")
        if f["final"]:
            break
    expect(f["text"] == "You said: в нескольких кадрах", "the text whole", f["text"])


@case(FULL)
async def calls_are_answered(run: Run):
    """§9: a listed method gets a result, an unknown one a result with an error."""
    phone = await run.connected()
    methods = phone.ready["capabilities"].get("call") or []
    if "devices.list" not in methods:
        raise Skip("the server lists no call devices.list")
    listed = await phone.call("devices.list")
    expect(phone.id in json.dumps(listed), "this device in the list", listed)
    error = await phone.call("no.such.method", error=True)
    described = isinstance(error.get("code"), str) and isinstance(error.get("message"), str)
    expect(described, "an error with a code and a message", error)


@case(FULL, own=True)
async def a_stopping_server_says_1001(run: Run):
    """§1: a server that stops closes with 1001, exits by itself, and serves again after its next
    start.
    """
    phone = await run.connected()
    await phone.ask("before")
    status = await run.server.stop()
    expect(status is not None, "the process to end within 15 s of SIGTERM", "it had to be killed")
    await phone.closed_with(1001)
    await run.server.start()
    await phone.connect()
    await phone.echo("after")
