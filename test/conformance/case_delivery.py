"""Deliveries: messages of scheduled jobs to a device that is connected or away."""

from __future__ import annotations

import asyncio

from case_stream import expect_chunks
from cases import CORE, FULL, NOT_APPROVED, Run, case
from expect import PNG, b64, expect, fresh_id, fresh_token
from phone import Phone


DELIVERY_TOKEN = fresh_token()
FORWARDED = {"X-Forwarded-For": "203.0.113.9"}
NIGHTLY, WEEKLY = fresh_token(), fresh_token()


async def deliver(sender: Phone, to: str, text: str | None = None, **fields) -> dict:
    """Sends a delivery. Returns its delivered frame, or the error."""
    ident = fields.pop("id", None) or fresh_id("d")
    start = sender.now()
    await sender.send(
        {
            "t": "deliver",
            "id": ident,
            "to": to,
            **({"text": text} if text is not None else {}),
            **fields,
        }
    )
    return await sender.wait(
        lambda f: f["t"] == "delivered" and f.get("id") == ident or f["t"] == "error",
        f"an answer to deliver {ident}",
        start=start,
    )


async def noticed(sender: Phone) -> None:
    """Gives the server time to notice that another connection is gone.

    For senders that cannot chat: others just ask something.
    """
    for _ in range(3):
        await asyncio.sleep(0.1)
        await sender.ping()


async def refused(sender: Phone, code: str, to: str, text: str, **fields) -> dict:
    ident = fresh_id("d")
    f = await deliver(sender, to, text, id=ident, **fields)
    expect(f["t"] == "error" and f["code"] == code, f"error {code}", f)
    expect(f.get("ref") == ident, f"ref {ident}", f)
    return f


@case(CORE)
async def cron_reaches_a_live_device(run: Run):
    """§8: a local connection delivers a text to another device, which gets it as a message."""
    phone, cron = await run.connected(), await run.connected()
    f = await deliver(cron, phone.id, "Backup finished ✅")
    expect(f["t"] == "delivered", "delivered", f)
    m = await phone.reply()
    expect(m.text == "Backup finished ✅" and m.last["final"], "the text, final", m.last)
    expect(not cron.chat(), "nothing for the sender", cron.recent())


@case(FULL)
async def delivered_says_live_or_queued(run: Run):
    """§8: delivered{queued:false} means a live device. `to` is a device id or mobile:<device.id>."""
    phone, cron = await run.connected(), await run.connected()
    for to in (phone.id, f"mobile:{phone.id}"):
        start = phone.now()
        f = await deliver(cron, to, f"to {to}")
        expect(f["t"] == "delivered" and f.get("queued") is False, "delivered, queued false", f)
        m = await phone.reply(start)
        expect(
            m.text == f"to {to}" and isinstance(m.last.get("seq"), int),
            "the text with a seq",
            m.last,
        )


@case(CORE)
async def deliver_from_outside_is_forbidden(run: Run):
    """§8: only local connections deliver with an app token. A forwarding header makes a connection
    remote.
    """
    phone = await run.connected()
    for headers in (
        FORWARDED,
        {"X-Real-IP": "203.0.113.9"},
        {"Forwarded": "for=203.0.113.9"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Forwarded-Proto": "https"},
    ):
        outside = await run.connected(headers=headers)
        await refused(outside, "forbidden", phone.id, "must not arrive")
        await outside.echo("go on")
    expect(not phone.chat(), "nothing delivered", phone.recent())


@case(FULL, {"MOBILE_TRUSTED_PROXIES": "none"})
async def no_forwarding_header_makes_loopback(run: Run):
    """§8: a forwarding header from an untrusted peer still makes the connection remote."""
    phone = await run.connected()
    for headers in (
        FORWARDED,
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Real-IP": "127.0.0.1"},
        {"X-Forwarded-Host": "localhost"},
    ):
        await refused(
            await run.connected(headers=headers), "forbidden", phone.id, "must not arrive"
        )
    expect(
        (await deliver(await run.connected(), phone.id, "from here"))["t"] == "delivered",
        "delivered without such a header",
        "refused",
    )
    expect((await phone.reply()).text == "from here", "the text alone", phone.recent())


@case(CORE, {"MOBILE_DELIVER_TOKENS": DELIVERY_TOKEN})
async def a_delivery_token_works_from_outside(run: Run):
    """§8: a token of MOBILE_DELIVER_TOKENS may deliver from anywhere."""
    phone = await run.connected()
    cron = await run.connected(token=DELIVERY_TOKEN, headers=FORWARDED)
    f = await deliver(cron, phone.id, "from the scheduler")
    expect(f["t"] == "delivered", "delivered", f)
    expect((await phone.reply()).text == "from the scheduler", "the text", phone.recent())
    other = await run.connected(headers=FORWARDED)
    await refused(other, "forbidden", phone.id, "must not arrive")


@case(FULL, {**NOT_APPROVED, "MOBILE_DELIVER_TOKENS": f"nightly={NIGHTLY}, {WEEKLY}"})
async def a_delivery_connection_is_no_device(run: Run):
    """§8: a connection with a delivery token needs no approval, gets no chat and is no addressee."""
    nightly, weekly = await run.connected(token=NIGHTLY, headers=FORWARDED), await run.connected(
        token=WEEKLY
    )
    for to in (nightly.id, f"mobile:{nightly.id}", weekly.id):
        await refused(weekly, "device_offline", to, "to a sender")
    start = nightly.now()
    await nightly.say("hello there")
    await nightly.nothing(
        lambda f: f["t"] in ("message", "media", "typing", "avatar", "prompt"),
        "chat for a sender",
        start=start,
    )
    stranger = await run.connected()
    await stranger.close()
    await noticed(nightly)
    await refused(nightly, "device_offline", stranger.id, "not approved")
    expect(
        (await deliver(weekly, fresh_id("nobody"), "x"))["t"] == "error",
        "an error for an unknown device",
        weekly.recent(),
    )


@case(FULL, {"MOBILE_DELIVER_TOKENS": f"nightly={NIGHTLY},weekly={WEEKLY}"})
async def the_same_delivery_is_made_once(run: Run):
    """§3: a delivery sent again under its id gets its first answer. Ids of different senders are
    independent.
    """
    phone, cron, other = (
        await run.connected(),
        await run.connected(token=NIGHTLY),
        await run.connected(token=WEEKLY),
    )
    first = await deliver(cron, phone.id, "once", id="d1")
    expect(first["t"] == "delivered" and first.get("queued") is False, "delivered, live", first)
    for text in ("once", "other words"):
        again = await deliver(cron, phone.id, text, id="d1")
        expect(again == first, "the first answer again", again)
    await phone.close()
    await noticed(cron)
    queued = await deliver(cron, phone.id, "kept", id="d2")
    expect(queued["t"] == "delivered" and queued.get("queued") is True, "delivered, queued", queued)
    await phone.connect()
    await phone.reply(phone.since_connect, lambda t: t == "kept", what="`kept`")
    again = await deliver(cron, phone.id, "kept", id="d2")
    expect(again == queued, "the first answer, queued true", again)
    cron2 = await run.connected(cron.id, token=NIGHTLY)
    expect(
        await deliver(cron2, phone.id, "once", id="d1") == first,
        "the first answer on a new connection",
        cron2.recent(),
    )
    expect(
        (await deliver(other, phone.id, "from another", id="d1"))["t"] == "delivered",
        "delivered for another sender",
        other.recent(),
    )
    await phone.reply(phone.since_connect, lambda t: t == "from another", what="`from another`")
    await phone.nothing("message", "second copy")
    got = [f["text"] for f in phone.frames if f["t"] == "message"]
    expect(got == ["once", "kept", "from another"], "three texts", got)


@case(FULL, own=True)
async def home_is_where_sethome_was_said(run: Run):
    """§8: `home` is the device that last said /sethome: connected, away, and after a restart."""
    phone, e, cron = await run.connected(), await run.connected(), await run.connected()
    await refused(cron, "device_offline", "home", "nobody's home")
    m = await phone.ask("/sethome")
    expect(m.text == f"home: mobile:{phone.id}", f"`home: mobile:{phone.id}`", m.text)
    f = await deliver(cron, "home", "good morning")
    expect(f["t"] == "delivered" and f.get("queued") is False, "delivered, live", f)
    await phone.reply(match=lambda t: t == "good morning", what="`good morning`")
    await phone.close()
    await run.server.crash_and_start()
    await cron.connect()
    f = await deliver(cron, "home", "good night")
    expect(
        f["t"] == "delivered" and f.get("queued") is True, "delivered, queued, after a restart", f
    )
    await phone.connect()
    await phone.reply(phone.since_connect, lambda t: t == "good night", what="`good night`")
    await e.connect()
    m = await e.ask("/sethome")
    expect(m.text == f"home: mobile:{e.id}", "another home", m.text)
    await deliver(cron, "home", "moved")
    await e.reply(match=lambda t: t == "moved", what="`moved`")
    await phone.nothing(
        lambda f: f["t"] == "message" and f["text"] == "moved",
        "delivery to the old home",
        start=phone.since_connect,
    )


@case(CORE)
async def an_unknown_device_is_device_offline(run: Run):
    """§8: a delivery to an unknown device gets device_offline."""
    cron = await run.connected()
    await refused(cron, "device_offline", fresh_id("nobody"), "hello?")
    await refused(cron, "device_offline", "mobile:" + fresh_id("nobody"), "hello?")


@case(CORE, {"MOBILE_OFFLINE_DELIVERY": "reject"})
async def a_live_connection_can_be_required(run: Run):
    """§8: with MOBILE_OFFLINE_DELIVERY=reject an absent device gets device_offline, and nothing
    later.
    """
    phone, cron = await run.connected(), await run.connected()
    expect(
        (await deliver(cron, phone.id, "live"))["t"] == "delivered",
        "delivered while live",
        cron.recent(),
    )
    await phone.reply()
    await phone.close()
    await cron.ask("is the other one gone")
    await refused(cron, "device_offline", phone.id, "gone")
    await phone.connect()
    await phone.nothing(
        lambda f: f["t"] == "message" and f["text"] == "gone",
        "refused delivery",
        start=phone.since_connect,
    )


@case(FULL)
async def a_delivery_waits_for_its_device(run: Run):
    """§8: deliveries to an absent device are queued, and arrive in order, once, after its next
    hello.
    """
    phone, cron = await run.connected(), await run.connected()
    await phone.close()
    await cron.ask("is the other one gone")
    for i in range(5):
        f = await deliver(cron, phone.id, f"waiting {i}")
        expect(f["t"] == "delivered" and f.get("queued") is True, "delivered, queued true", f)
    await phone.connect()
    await phone.reply(phone.since_connect, lambda t: t == "waiting 4", what="the fifth delivery")
    got = [m.text for m in phone.chat(phone.since_connect).values()]
    expect(got == [f"waiting {i}" for i in range(5)], "five deliveries in order", got)
    await phone.connect()
    await phone.nothing("message", "second copy", start=phone.since_connect)


@case(FULL)
async def require_live_is_never_queued(run: Run):
    """§8: require_live to an absent device gets device_offline, and nothing arrives later."""
    phone, cron = await run.connected(), await run.connected()
    await phone.close()
    await cron.ask("is the other one gone")
    await refused(cron, "device_offline", phone.id, "now or never", require_live=True)
    await phone.connect()
    await phone.nothing("message", "late delivery", start=phone.since_connect)
    f = await deliver(cron, phone.id, "now", require_live=True)
    expect(f["t"] == "delivered" and f.get("queued") is False, "delivered to the live device", f)
    expect((await phone.reply(phone.since_connect)).text == "now", "the text", phone.recent())


@case(FULL)
async def a_file_can_be_delivered(run: Run):
    """§8: a delivery may hold a file, with the text as its caption."""
    phone, cron = await run.connected(), await run.connected()
    f = await deliver(
        cron,
        phone.id,
        "the chart",
        kind="image",
        mime="image/png",
        filename="chart.png",
        data=b64(PNG),
    )
    expect(f["t"] == "delivered", "delivered", f)
    got, data = await phone.next_file()
    expect(
        data == PNG and got["kind"] == "image" and got["filename"] == "chart.png",
        "the picture",
        {k: v for k, v in got.items() if k != "data"},
    )
    expect(
        got.get("caption") == "the chart"
        or any(m.text == "the chart" for m in phone.chat().values()),
        "the text too",
        phone.recent(),
    )
    await phone.close()
    await cron.ask("is the other one gone")
    await deliver(
        cron,
        phone.id,
        kind="document",
        mime="text/plain",
        filename="log.txt",
        data=b64(b"a line\n"),
    )
    await phone.connect()
    got, data = await phone.next_file(phone.since_connect)
    expect(
        data == b"a line\n" and got["filename"] == "log.txt", "the file after the reconnect", got
    )


@case(FULL)
async def a_long_delivery_joins_to_the_exact_bytes(run: Run):
    """§4: a long delivery comes in chunks that join to the exact text, whatever it holds."""
    phone, cron = await run.connected(), await run.connected()
    family, flag, thumb = "👩‍👩‍👧‍👦", "🇩🇪", "👍🏿"
    for text in (
        family * 900,
        flag * 2500,
        "e\u0301" * 3001,
        thumb * 2200,
        "x" * 9001,
        ("line of words\r\n" * 700),
        "```go\nfunc f() {}\n```\n" * 400,
        "  leading and trailing  " + "\n" * 4100 + "\t",
    ):
        start = phone.now()
        f = await deliver(cron, phone.id, text)
        expect(f["t"] == "delivered", "delivered", f)
        m = await phone.reply(start)
        expect_chunks(m.frames, text, least=1)


@case(FULL)
async def a_delivery_in_the_middle_of_a_turn(run: Run):
    """§8: a delivery during a streamed reply arrives once and does not mix with it."""
    phone, cron = await run.connected(), await run.connected()
    start = phone.now()
    await phone.say("/demo stream 200")
    await phone.wait("message", "the stream to begin", start=start)
    f = await deliver(cron, phone.id, "by the way")
    expect(f["t"] == "delivered", "delivered", f)
    await phone.reply(
        start, lambda t: t == " ".join(f"w{i}" for i in range(1, 201)), what="the whole stream"
    )
    await phone.reply(start, lambda t: t == "by the way", what="the delivery")
    expect(
        len(phone.chat(start)) == 2,
        "two messages",
        [m.text[:20] for m in phone.chat(start).values()],
    )


@case(FULL)
async def bad_deliveries_are_refused(run: Run):
    """§8: a delivery without addressee, without content or with broken base64 gets an error and
    arrives nowhere.
    """
    phone, cron = await run.connected(), await run.connected()
    for n, fields in enumerate(
        (
            {"to": phone.id},
            {"to": phone.id, "text": ""},
            {"text": "to nobody"},
            {"to": 7, "text": "x"},
            {"to": phone.id, "text": ["x"]},
            {
                "to": phone.id,
                "kind": "document",
                "mime": "text/plain",
                "filename": "a",
                "data": "@@",
            },
        )
    ):
        start = cron.now()
        await cron.send({"t": "deliver", "id": f"bd{n}", **fields})
        await cron.error(
            ("bad_frame", "device_offline") if n in (2, 3) else "bad_frame", f"bd{n}", start
        )
    expect(
        not any(f["t"] in ("message", "media") for f in phone.frames),
        "nothing delivered",
        phone.recent(),
    )
