"""Broken input, bad networks and many devices: nobody else may notice."""

from __future__ import annotations

import asyncio
import base64
import json
import time

from cases import CORE, FULL, Run, case
from expect import Fail, MIB, expect, fresh_id, pattern


MAX_FRAME = 16 * MIB


@case(FULL)
async def malformed_json_is_answered(run: Run):
    """§1: broken JSON of any kind, a repeated key or nesting deeper than 64 gets bad_frame, and the
    connection continues.
    """
    phone = await run.connected()
    for raw in (
        "null",
        "[]",
        "7",
        '"x"',
        "{}",
        '{"t":null}',
        '{"t":["text"]}',
        '{"t":7}',
        "",
        " ",
        "not json",
        "{",
        '{"t":"text"',
        '{"t":"ping","id":"1"} {"t":"ping","id":"2"}',
        '{"t":"ping","id":"1"}x',
        '{"t":"ping","t":"text","id":"1"}',
        '{"t":"text","id":"a","text":"one","text":"two"}',
        "{'t':'ping'}",
        '{"t":"ping","id":"1",}',
        '{"t":"ping","id":NaN}',
        '{"t":"text","id":"a","text":"bad \\x escape"}',
        '{"t":"text","id":"a","text":"raw\ttab"}',
        "[" * 200 + "]" * 200,
        '\ufeff{"t":"ping","id":"1"}',
        '{"t":"ping","id":"1","x":{"a":1,"a":1}}',
        '{"t":"ping","id":"1","x":[0,[{"b":{"a":1,"\\u0061":2}}]]}',
        '{"t":"ping","id":"1","x":' + "[" * 66 + "]" * 66 + "}",
        '{"t":"ping","id":"1","x":' + '{"a":' * 5000 + "1" + "}" * 5001,
    ):
        start = phone.now()
        await phone.send(raw)
        try:
            await phone.error("bad_frame", start=start)
        except Fail as e:
            raise Fail(f"after {raw[:40]!r}: {e}") from None
    start = phone.now()
    await phone.send('{"t":""}')
    await phone.error(("bad_frame", "unsupported_frame"), start=start)
    for raw in (
        '{"t":"ping","id":"deep","x":' + "[" * 62 + "]" * 62 + "}",
        '{"t":"ping","id":"same","x":[{"a":1},{"a":1}],"y":{"x":{"t":1}}}',
    ):
        start = phone.now()
        await phone.send(raw)
        f = await phone.wait(lambda f: f["t"] in ("pong", "error"), "a pong", start=start)
        expect(f["t"] == "pong", "a pong: neither too deep nor a key twice", f)
    await phone.echo("still here")
    expect(
        len(phone.chat()) == 1,
        "no turn for a malformed frame",
        [m.text for m in phone.chat().values()],
    )


@case(FULL)
async def names_are_exact(run: Run):
    """§1: field and type names are case-sensitive. A field in other letters is an unknown field."""
    phone = await run.connected()
    for raw, code, ref in (
        ('{"T":"ping","id":"1"}', "bad_frame", None),
        ('{"t":"text","id":"n1","Text":"must not run"}', "bad_frame", "n1"),
        ('{"t":"TEXT","id":"n2","text":"must not run"}', "unsupported_frame", "n2"),
        ('{"t":"Ping","id":"n3"}', "unsupported_frame", "n3"),
    ):
        start = phone.now()
        await phone.send(raw)
        await phone.error(code, ref, start)
    start = phone.now()
    await phone.send(
        '{"t":"text","T":"ping","id":"n4","ID":"other","text":"right","Text":"wrong","TEXT":7}'
    )
    expect(
        (await phone.reply(start)).text == "You said: right",
        "`You said: right`",
        phone.recent(start),
    )
    f = await phone.ack_of("n4", start)
    expect(f["t"] == "accepted" and f["duplicate"] is False, "accepted for n4", f)
    expect(
        len(phone.chat()) == 1,
        "no turn for a refused frame",
        [m.text for m in phone.chat().values()],
    )
    x = run.phone()
    await x.rejected(
        {"t": "hello", "Token": run.server.token, "device": {"id": x.id}},
        ("auth_failed", "bad_frame"),
    )
    await x.rejected(
        {"t": "hello", "token": run.server.token, "Phone": {"id": x.id}}, ("bad_frame",)
    )


@case(FULL)
async def wrong_types_are_answered(run: Run):
    """§1 and §3: a known frame with missing or wrongly typed fields gets an error and starts no
    turn.
    """
    phone = await run.connected()
    for raw in (
        '{"t":"media"}',
        '{"t":"media","id":"m","kind":"image","data":[],"part":0,"parts":1}',
        '{"t":"audio","id":"a"}',
        '{"t":"media","id":"m","kind":7,"filename":"x","data":"YQ==","part":0,"parts":1}',
        '{"t":"prompt"}',
        '{"t":"prompt","prompt_id":7,"option_id":"once"}',
        '{"t":"prompt","prompt_id":["a"]}',
        '{"t":"audio","id":"a","format":"wav","data":{"a":1}}',
        '{"t":"deliver"}',
        '{"t":"text","id":{"a":1},"text":"x"}',
    ):
        start = phone.now()
        await phone.send(raw)
        f = await phone.wait(
            lambda f: f["t"] in ("error", "prompt_done"), f"an error after {raw}", start=start
        )
        expect(
            f["t"] == "prompt_done" or f["code"] in ("bad_frame", "device_offline"),
            f"bad_frame after {raw}",
            f,
        )
    await phone.echo("still here")
    expect(
        len(phone.chat()) == 1,
        "no turn for a malformed frame",
        [m.text for m in phone.chat().values()],
    )


@case(FULL)
async def binary_messages_are_answered(run: Run):
    """§1: a binary message gets bad_frame even if it holds valid JSON, and the connection
    continues.
    """
    phone = await run.connected()
    for raw in (
        b"\x00\xff" * 100,
        b"",
        json.dumps({"t": "text", "id": "b", "text": "in binary"}).encode(),
    ):
        start = phone.now()
        await phone.send(raw)
        await phone.error("bad_frame", start=start)
    await phone.echo("still here")
    expect(
        len(phone.chat()) == 1,
        "no turn for a binary message",
        [m.text for m in phone.chat().values()],
    )


@case(FULL)
async def invalid_utf8_is_answered(run: Run):
    """§1: invalid UTF-8 in a text message gets bad_frame, and the connection continues."""
    s, _, _ = await run.raw()
    await s.hello(run.server, fresh_id("dev"))
    for bad in (b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"\xf0\x9f\x98"):
        s.frame(1, b'{"t":"text","id":"u","text":"' + bad + b'"}')
        f = await s.wait("error")
        expect(f["code"] == "bad_frame", "bad_frame", f)
    s.json({"t": "ping", "id": "p"})
    expect((await s.wait("pong"))["id"] == "p", "a pong", "another")


@case(FULL, heavy=True)
async def the_largest_frame_is_taken(run: Run):
    """§1 and §11: a frame may have 16 MiB, to the byte."""
    phone = await run.connected()
    head, tail = '{"t":"ping","id":"large","pad":"', '"}'
    frame = head + "x" * (MAX_FRAME - len(head) - len(tail)) + tail
    expect(len(frame) == MAX_FRAME, "16 MiB", len(frame))
    await phone.send(frame)
    await phone.wait(lambda f: f["t"] == "pong" and f["id"] == "large", "a pong", timeout=40)


@case(CORE, own=True, heavy=True)
async def a_larger_frame_is_too_big(run: Run):
    """§1: a frame over 16 MiB gets too_big and close 1009, in one piece or in fragments. The device
    may return.
    """
    other = await run.connected()
    ident = fresh_id("dev")
    head, tail = b'{"t":"ping","id":"large","pad":"', b'"}'
    for fragments in (1, 5):
        s, _, _ = await run.raw()
        await s.hello(run.server, ident)
        frame = head + b"x" * (MAX_FRAME + 1 - len(head) - len(tail)) + tail
        size = len(frame) // fragments + 1
        pieces = [frame[i : i + size] for i in range(0, len(frame), size)]
        ending = asyncio.create_task(s.until_closed(40))
        for i, piece in enumerate(pieces):
            s.frame(1 if i == 0 else 0, piece, fin=i == len(pieces) - 1)
            try:
                await s.writer.drain()
            except ConnectionError:
                break
        frames, code = await ending
        expect(code == 1009, f"close 1009 for one byte too many in {fragments} fragment(s)", code)
        expect(
            any(f["t"] == "error" and f["code"] == "too_big" for f in frames),
            "error too_big",
            frames[-2:],
        )
    await other.echo("undisturbed")
    phone = await run.connected(ident)
    await phone.echo("back")


@case(FULL, own=True)
async def a_huge_announcement_reserves_nothing(run: Run):
    """§1: a frame that announces a terabyte closes the connection before any memory is reserved for
    it.
    """
    s, _, _ = await run.raw()
    await s.hello(run.server, fresh_id("dev"))
    before = run.server.memory()
    s.writer.write(b"\x81\xff" + (2**40).to_bytes(8, "big") + b"\0\0\0\0" + b'{"t":"ping"')
    _, code = await s.until_closed(20)
    expect(code in (1009, 1002, None), "close 1009", code)
    after = run.server.memory()
    expect(
        before is None or after - before < 64 * MIB,
        "no memory taken for it",
        f"{(after or 0) - (before or 0)} bytes",
    )


@case(FULL)
async def one_bad_device_disturbs_nobody(run: Run):
    """§10: no frame, however broken, disturbs another device or the server."""
    good = await run.connected()

    async def nuisance():
        for raw in (
            '{"t":"text"',
            "\u0000",
            "[" * 5000,
            '{"t":"media","parts":1e999}',
            '{"t":"text","id":"' + "x" * 70000 + '","text":"y"}',
        ):
            phone = await run.connected()
            await phone.send(raw)
            await phone.wait("error", f"an error after {raw[:20]!r}", or_closed=True)
            await phone.drop()
            s, _, _ = await run.raw()
            s.writer.write(b"\xff" * 64)
            await s.writer.drain()
            s.close()

    task = asyncio.create_task(nuisance())
    try:
        for i in range(8):
            await good.echo(f"calm {i}")
    finally:
        await task
    expect(not good.closed.is_set(), "an open connection", good.close_code)


@case(FULL, slow=True)
async def a_dead_peer_is_dropped(run: Run):
    """§1: the server pings every 25 seconds and drops a peer that answers nothing for 60."""
    s, _, _ = await run.raw()
    await s.hello(run.server, fresh_id("dev"))
    began, pings = time.monotonic(), 0
    while True:
        try:
            op, _ = await s.next_frame(max(0.1, began + 110 - time.monotonic()))
        except TimeoutError:
            raise Fail(
                "expected the dead peer to be dropped within 110 s; it is still connected"
            ) from None
        except (ConnectionError, asyncio.IncompleteReadError):
            break
        if op == 8:
            break
        pings += op == 9
    took = time.monotonic() - began
    expect(pings >= 1, "at least one ping before", pings)
    expect(took >= 40, "patience of about 60 s", f"{took:.0f} s")


@case(FULL, slow=True)
async def a_silent_living_peer_is_kept(run: Run):
    """§1: a client that only answers pings stays connected."""
    phone = await run.connected()
    await asyncio.sleep(68)
    expect(not phone.closed.is_set(), "an open connection", phone.close_code)
    await phone.echo("good morning")


@case(FULL, own=True, heavy=True)
async def a_slow_reader_is_bounded(run: Run):
    """§1: a device that stops reading costs bounded memory, delays nobody, and gets everything
    later.
    """
    files, size = 22, 8_000_000
    other, ident = await run.connected(), fresh_id("dev")
    await other.ask("warm up")
    s, _, _ = await run.raw()
    ready = await s.hello(run.server, ident)
    before = run.server.memory()
    for i in range(files):
        s.json({"t": "text", "id": f"f{i}", "text": f"/demo file {size}"})
    await s.writer.drain()
    worst, grown, began = 0.0, 0, time.monotonic()
    while time.monotonic() - began < 12:
        t = time.monotonic()
        await other.ask("are you quick")
        worst = max(worst, time.monotonic() - t)
        if before is not None and (now := run.server.memory()):
            grown = max(grown, now - before)
        await asyncio.sleep(0.1)
    expect(worst < 5, "the other device's replies within 5 s", f"{worst:.1f} s")
    expect(
        grown < 176 * MIB, "less than 176 MiB of memory for 235 MB unread", f"{grown // MIB} MiB"
    )
    s.close()
    phone = await run.phone(ident).connect({"epoch": ready["resume"]["epoch"], "seq": 0})
    start, seen = phone.since_connect, set()
    while len(seen) < files:
        f = await phone.wait(
            lambda f: f["t"] == "media" and f["final"] and f["id"] not in seen,
            f"file {len(seen) + 1} of {files}",
            start=start,
            timeout=60,
            or_closed=True,
        )
        if f is None:
            # Too slow again: return with the cursor of the last complete file.
            expect(phone.close_code == 1013, "close 1013", phone.close_code)
            last = max(
                [x["seq"] for x in phone.frames if x["t"] == "media" and x["final"]], default=0
            )
            await phone.connect({"epoch": ready["resume"]["epoch"], "seq": last})
            continue
        frames = [
            x
            for x in phone.frames[phone.since_connect :]
            if x["t"] == "media" and x["id"] == f["id"]
        ]
        data = b"".join(base64.b64decode(x["data"]) for x in frames)
        expect(len(data) == size and data == pattern(size), "each file whole", len(data))
        seen.add(f["id"])
        for x in frames:
            x["data"] = ""
    await other.ask("and still quick")


@case(FULL, own=True, heavy=True)
async def two_hundred_devices_at_once(run: Run):
    """§2: 200 devices at once each get their own replies, in order, and nobody else's."""
    devices = [run.phone() for _ in range(200)]
    for i in range(0, 200, 25):
        await asyncio.gather(*(phone.connect() for phone in devices[i : i + 25]))

    async def talk(phone):
        for i in range(3):
            await phone.say(f"{phone.id} says {i}")
        await phone.reply(
            match=lambda t: t == f"You said: {phone.id} says 2", timeout=60, what="the third answer"
        )

    await asyncio.gather(*(talk(phone) for phone in devices))
    for phone in devices:
        got = [m.text for m in phone.chat().values()]
        expect(
            got == [f"You said: {phone.id} says {i}" for i in range(3)],
            "its own three replies",
            got,
        )


@case(FULL, own=True)
async def reconnecting_a_hundred_times(run: Run):
    """§2: a device that reconnects a hundred times is not locked out and gets no message twice."""
    phone = await run.connected()
    await phone.ask("first")
    for _ in range(100):
        await phone.close()  # so that the newer connection replaces nothing
        await phone.connect()
    await phone.echo("last")
    finals = [f["text"] for f in phone.frames if f["t"] == "message" and f["final"]]
    expect(finals == ["You said: first", "You said: last"], "each reply once", finals)


@case(FULL)
async def hammering_one_device_id(run: Run):
    """§2: of ten simultaneous connections of one device, five replace an older one and four get
    rate_limited and 1013.
    """
    ident = fresh_id("dev")
    devices = [run.phone(ident) for _ in range(10)]

    async def dial(phone):
        await phone.open()
        await phone.send(phone.hello())
        await phone.wait(
            lambda f: f["t"] in ("ready", "error"), "ready or an error", or_closed=True
        )

    await asyncio.gather(*(dial(phone) for phone in devices))
    deadline = time.monotonic() + 20
    while sum(not phone.closed.is_set() for phone in devices) > 1 and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    left = [phone for phone in devices if not phone.closed.is_set()]
    expect(len(left) == 1, "one connection left", len(left))
    codes = [phone.close_code for phone in devices if phone.closed.is_set()]
    expect(sorted(codes) == [1013] * 4 + [4409] * 5, "five closed with 4409, four with 1013", codes)
    for phone in devices:
        if phone.close_code == 1013:
            f = await phone.error("rate_limited")
            expect(
                isinstance(f.get("retry_after"), (int, float)) and 0 < f["retry_after"] <= 60,
                "retry_after within a minute",
                f,
            )
    expect((await left[0].ask("alone")).text == "You said: alone", "the reply", left[0].recent())


@case(FULL)
async def replacing_oneself_is_limited(run: Run):
    """§2: after 5 replacements in a minute the newer connection gets rate_limited and 1013. The
    older one keeps working.
    """
    ident = fresh_id("dev")
    live = await run.connected(ident)
    for _ in range(5):
        old, live = live, await run.connected(ident)
        await old.closed_with(4409)
    for _ in range(2):
        f = await run.phone(ident).rejected(codes=("rate_limited",), close=1013)
        expect(
            isinstance(f.get("retry_after"), (int, float)) and 0 < f["retry_after"] <= 60,
            "retry_after within a minute",
            f,
        )
    await live.echo("still me")
    other = await run.connected()
    newer = await run.connected(other.id)
    await other.closed_with(4409)
    await newer.echo("hello")
