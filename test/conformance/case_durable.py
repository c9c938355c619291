"""Durability: a lost link, a device that is away, a server that crashes."""

from __future__ import annotations

import asyncio

from case_delivery import deliver
from cases import CORE, FULL, Run, case
from expect import expect, fresh_id, pattern
from phone import Phone


def durable(phone: Phone, start=0) -> list[dict]:
    """The final messages and files from position `start` on, in the order they came."""
    return [f for f in phone.frames[start:] if f["t"] in ("message", "media") and f.get("final")]


def span(phone: Phone) -> dict:
    """The `resume` of the last ready. Every ready has one."""
    r = phone.ready.get("resume")
    expect(
        isinstance(r, dict)
        and all(isinstance(r.get(k), int) for k in ("from", "to"))
        and isinstance(r.get("lost"), bool),
        "resume {epoch, from, to, lost} in ready",
        r,
    )
    return r


def newest(phone: Phone) -> dict:
    """The cursor of a client that has stored every durable frame it saw."""
    return {
        "epoch": phone.ready["resume"]["epoch"],
        "seq": max([f["seq"] for f in phone.frames if "seq" in f], default=0),
    }


async def away_with_deliveries(run: Run, n: int, ident=None) -> tuple[Phone, Phone, dict]:
    """A device that got `n` deliveries while away and has not returned, the sender, and the cursor."""
    phone, cron = await run.connected(ident), await run.connected()
    m = await phone.ask("cursor")
    cursor = {"epoch": phone.ready["resume"]["epoch"], "seq": m.last["seq"]}
    await phone.turn_over()
    await phone.close()
    await cron.ask("is the other one gone")
    for i in range(n):
        f = await deliver(cron, phone.id, f"backlog {i}")
        expect(f["t"] == "delivered", "delivered", f)
    return phone, cron, cursor


@case(CORE)
async def the_session_is_kept_over_a_drop(run: Run):
    """§2: after a dropped connection and a new hello the session is the same."""
    phone = await run.connected()
    await phone.ask("before")
    for _ in range(3):
        await phone.drop()
        await phone.connect()
        expect(
            phone.ready["session"] == f"mobile:{phone.id}",
            "the same session",
            phone.ready["session"],
        )
    await phone.echo("after")


@case(CORE)
async def a_reply_outlives_the_connection(run: Run):
    """§4: the reply to a text sent before a drop arrives after the reconnect, once."""
    phone = await run.connected()
    await phone.say("/demo slow 2")
    await phone.wait(lambda f: f["t"] == "typing", "typing")
    await phone.drop()
    await asyncio.sleep(0.3)
    await phone.connect()
    expect(
        (await phone.reply(phone.since_connect)).text == "done after 2 s",
        "the reply on the new connection",
        phone.recent(),
    )
    await phone.drop()
    await phone.connect()
    await phone.nothing(
        lambda f: f["t"] == "message" and f["final"],
        "the same reply a second time",
        start=phone.since_connect,
    )


@case(FULL)
async def a_client_without_cursor_misses_nothing(run: Run):
    """§4: a client without resume and ack gets what was never sent to it, and only that."""
    phone = await run.connected()
    await phone.say("/demo say 1 while you were out")
    await phone.reply(match=lambda t: t == "in 1 s", what="`in 1 s`")
    await phone.close()
    await asyncio.sleep(1.5)
    await phone.connect()
    await phone.reply(
        phone.since_connect, lambda t: t == "while you were out", what="the missed message"
    )
    expect(
        len(durable(phone, phone.since_connect)) == 1,
        "the missed message alone",
        phone.recent(phone.since_connect),
    )
    await phone.connect()
    await phone.nothing("message", "message that was already sent", start=phone.since_connect)


@case(FULL)
async def seq_only_grows(run: Run):
    """§4: finals, files and cards carry a seq that only grows."""
    phone = await run.connected()
    await phone.ask("one")
    await phone.ask("/demo twice")
    await phone.reply(match=lambda t: t == "two", what="`two`")
    await phone.say("/demo image")
    await phone.next_file()
    f = await phone.card("/demo confirm")
    done = await phone.answer(f["id"], option_id="once")
    await phone.reply(match=lambda t: t.startswith("confirm"), what="the confirmation")
    seqs = [
        x["seq"]
        for x in phone.frames
        if x["t"] in ("media", "prompt", "prompt_done") or x["t"] == "message" and x["final"]
    ]
    expect(
        all(isinstance(s, int) for s in seqs) and seqs == sorted(set(seqs)), "seqs that grow", seqs
    )
    expect(done["seq"] in seqs, "seq of prompt_done", seqs)


@case(FULL)
async def resume_replays_what_came_after_the_cursor(run: Run):
    """§4: resume replays every durable frame after the cursor with its id and seq, in order."""
    phone = await run.connected()
    for word in ("one", "two", "three", "four"):
        await phone.ask(word)
    sent = durable(phone)
    await phone.close()
    await phone.connect({"epoch": phone.ready["resume"]["epoch"], "seq": sent[1]["seq"]})
    await phone.reply(
        phone.since_connect, lambda t: t == "You said: four", what="the last of the replay"
    )
    again = durable(phone, phone.since_connect)
    expect(
        [(f["id"], f["seq"], f["text"]) for f in again]
        == [(f["id"], f["seq"], f["text"]) for f in sent[2:]],
        "three and four, as they were",
        [(f["id"], f["seq"], f["text"]) for f in again],
    )
    r = span(phone)
    expect(
        r.get("lost") is False and sent[1]["seq"] < r["from"] <= sent[2]["seq"],
        "lost false, from the first seq that follows",
        r,
    )
    expect(r["to"] == sent[3]["seq"], "to, the newest seq", r)


@case(FULL)
async def resume_at_the_end_replays_nothing(run: Run):
    """§4: a cursor at the newest frame replays nothing and loses nothing."""
    phone = await run.connected()
    m = await phone.ask("latest")
    await phone.turn_over()
    await phone.connect({"epoch": phone.ready["resume"]["epoch"], "seq": m.last["seq"]})
    r = span(phone)
    expect(
        r.get("lost") is False and r["from"] > r["to"] >= m.last["seq"], "lost false, from > to", r
    )
    await phone.nothing(lambda f: f["t"] == "message", "replay", start=phone.since_connect)
    expect((await phone.ask("more")).last["seq"] > m.last["seq"], "a larger seq", phone.recent())


@case(FULL)
async def acknowledged_is_forgotten(run: Run):
    """§3 and §4: an acknowledged frame is not sent again to a client without a cursor."""
    phone, cron, _ = await away_with_deliveries(run, 3)
    await phone.connect()
    m = await phone.reply(phone.since_connect, lambda t: t == "backlog 2", what="the backlog")
    await phone.send({"t": "ack", "seq": m.last["seq"]})
    await phone.ping()
    await phone.connect()
    await phone.nothing("message", "acknowledged message", start=phone.since_connect)
    await phone.connect({"epoch": phone.ready["resume"]["epoch"], "seq": m.last["seq"]})
    expect(
        phone.ready["resume"].get("lost") is False,
        "lost false at the acknowledged cursor",
        phone.ready["resume"],
    )
    await phone.nothing("message", "acknowledged message", start=phone.since_connect)


@case(FULL)
async def odd_acks_do_no_harm(run: Run):
    """§4: an ack that is late, ahead, repeated or of a wrong type breaks nothing."""
    phone = await run.connected()
    m = await phone.ask("one")
    for seq in (m.last["seq"], 0, -5, m.last["seq"], "7", None, 1.5, {}):
        await phone.send({"t": "ack", "seq": seq})
    await phone.ping()
    await phone.echo("two")


@case(FULL)
async def another_epoch_replays_all_there_is(run: Run):
    """§4: a cursor of another epoch, or beyond the newest seq, replays everything with lost:true."""
    phone = await run.connected()
    for word in ("one", "two"):
        m = await phone.ask(word)
    await phone.turn_over()
    epoch = phone.ready["resume"]["epoch"]
    for cursor in (
        {"epoch": "of-another-life", "seq": 9_000_000},
        {"epoch": "of-another-life", "seq": 0},
        {"epoch": epoch, "seq": m.last["seq"] + 1000},
    ):
        await phone.connect(cursor)
        await all_there_is(phone, cursor)
    start = phone.now()
    await phone.say("three")
    m = await phone.reply(start)
    expect(
        m.text == "You said: three" and phone.ready["resume"]["epoch"] == epoch,
        "the conversation to continue in the same epoch",
        m.last,
    )


async def all_there_is(phone: Phone, cursor) -> None:
    """After `one` and `two`: ready says lost, and both texts come again in order."""
    r = span(phone)
    expect(
        r.get("lost") is True and r["from"] <= r["to"],
        f"lost true, from and to for resume {cursor!r}",
        r,
    )
    await phone.reply(phone.since_connect, lambda t: t == "You said: two", what="the replay")
    got = [f["text"] for f in durable(phone, phone.since_connect)]
    expect(
        got == ["You said: one", "You said: two"],
        f"all there is, in order, for resume {cursor!r}",
        got,
    )


@case(FULL)
async def malformed_cursors_count_as_another_epoch(run: Run):
    """§2: a malformed resume counts as another epoch: ready with lost:true, never an error."""
    phone = await run.connected()
    for word in ("one", "two"):
        await phone.ask(word)
    await phone.turn_over()
    epoch = phone.ready["resume"]["epoch"]
    for cursor in (
        {"epoch": 7, "seq": "x"},
        {"seq": 1},
        {"epoch": epoch, "seq": -1},
        {"epoch": "x"},
        {"epoch": epoch},
        {"epoch": epoch, "seq": 0.5},
        5,
        "all",
        [],
    ):
        await phone.close()
        await phone.open()
        await phone.send({**phone.hello(), "resume": cursor})
        phone.ready = await phone.wait(
            lambda f: f["t"] in ("ready", "error"),
            f"an answer to resume {cursor!r}",
            start=phone.since_connect,
        )
        expect(phone.ready["t"] == "ready", f"ready for resume {cursor!r}", phone.ready)
        await all_there_is(phone, cursor)


@case(FULL)
async def every_ready_says_what_follows(run: Run):
    """§2: every ready has resume, with the first and the last seq that follow."""
    phone, cron, _ = await away_with_deliveries(run, 3)
    await phone.connect()
    r = span(phone)
    await phone.reply(phone.since_connect, lambda t: t == "backlog 2", what="the backlog")
    seqs = [f["seq"] for f in durable(phone, phone.since_connect)]
    expect(
        r["from"] <= seqs[0] and r["to"] == seqs[-1] and r.get("lost") is False,
        f"from up to {seqs[0]}, to {seqs[-1]}, lost false",
        r,
    )
    await phone.ping()
    await phone.close()
    await cron.ask("is the other one gone")
    await phone.connect()
    r = span(phone)
    expect(r["from"] > r["to"] == seqs[-1], f"from > to, to {seqs[-1]}, when all was sent", r)


@case(FULL)
async def a_live_frame_never_overtakes_the_backlog(run: Run):
    """§4: the backlog comes in order before anything newer, also while deliveries keep coming."""
    phone, cron, cursor = await away_with_deliveries(run, 60)

    async def go_on():
        for i in range(60, 100):
            await deliver(cron, phone.id, f"backlog {i}")

    task = asyncio.create_task(go_on())
    try:
        await phone.connect(cursor)
        await phone.reply(
            phone.since_connect, lambda t: t == "backlog 99", what="the last delivery", timeout=40
        )
    finally:
        await task
    got = [f["text"] for f in durable(phone, phone.since_connect)]
    expect(got == [f"backlog {i}" for i in range(100)], "a hundred in order, each once", got[:70])


@case(FULL)
async def a_running_stream_is_shown_to_who_comes_back(run: Run):
    """§4: a device that reconnects during a stream gets its text so far at once."""
    phone = await run.connected()
    await phone.say("/demo stream 400")
    first = await phone.wait(
        lambda f: f["t"] == "message" and len(f["text"]) > 40, "the stream to begin"
    )
    await phone.connect()
    f = await phone.wait(
        lambda f: f["t"] == "message", "the stream again", start=phone.since_connect, timeout=2.5
    )
    expect(
        f["id"] == first["id"] and f["text"].startswith(first["text"]),
        "the same message, further on",
        f,
    )
    m = await phone.reply(phone.since_connect)
    expect(m.text == " ".join(f"w{i}" for i in range(1, 401)), "the whole text", m.text)


@case(FULL)
async def a_silent_stream_is_shown_to_who_comes_back(run: Run):
    """§4: a device that reconnects gets the text so far at once, also while the stream pauses."""
    phone = await run.connected()
    await phone.say("/demo pause 7")
    first = await phone.wait(lambda f: f["t"] == "message" and f["text"] == "before", "`before`")
    for accept in ((), ("delta",)):
        phone.accept = accept
        await phone.connect()
        f = await phone.wait("message", "`before` at once", start=phone.since_connect, timeout=2)
        expect(
            (f["id"], f.get("text"), f["final"]) == (first["id"], "before", False),
            "the same message with its text so far",
            f,
        )
    m = await phone.reply(phone.since_connect)
    expect(m.id == first["id"] and m.text == "before after", "`before after` at the end", m.last)
    expect(not m.last.get("interrupted"), "not interrupted", m.last)


@case(FULL, own=True)
async def an_accepted_message_survives_a_kill(run: Run):
    """§3: once accepted is sent, a text survives SIGKILL and is answered after the restart."""
    phone = await run.connected()
    text = " ".join(f"word{i}" for i in range(60))
    ident = await phone.say(text)
    await phone.ack_of(ident)
    await run.server.crash_and_start()
    await phone.connect()
    await phone.reply(
        phone.since_connect,
        lambda t: t == "You said: " + text,
        what="the whole answer after the restart",
    )
    start = phone.now()
    await phone.say(text, ident)
    f = await phone.ack_of(ident, start)
    expect(f["t"] == "accepted" and f["duplicate"] is True, "the id known after the restart", f)


@case(FULL, own=True)
async def accepted_messages_keep_their_order_over_a_kill(run: Run):
    """§3: accepted texts keep their order across a crash in the first reply."""
    phone = await run.connected()
    texts = [f"{i} " + "and so on " * 12 for i in range(5)]
    texts = [t.strip() for t in texts]
    ids = [await phone.say(t) for t in texts]
    for ident in ids:
        await phone.ack_of(ident)
    await run.server.crash_and_start()
    await phone.connect()
    await phone.reply(
        0, lambda t: t == "You said: " + texts[4], what="the fifth answer", timeout=40
    )
    first = []
    for m in phone.chat().values():
        if (
            m.final
            and m.text.startswith("You said: ")
            and m.text[10:] in texts
            and m.text not in first
        ):
            first.append(m.text)
    expect(
        first == ["You said: " + t for t in texts], "five answers in order", [t[:14] for t in first]
    )


@case(FULL, own=True)
async def a_final_survives_a_kill(run: Run):
    """§4: an unacknowledged final is replayed after a crash with its id, seq and epoch."""
    phone = await run.connected()
    a = await phone.ask("one")
    b = await phone.ask("/demo long 9000")
    epoch = phone.ready["resume"]["epoch"]
    await run.server.crash_and_start()
    await phone.connect({"epoch": epoch, "seq": a.last["seq"]})
    expect(
        phone.ready["resume"]["epoch"] == epoch and phone.ready["resume"].get("lost") is False,
        "the same epoch, nothing lost",
        phone.ready["resume"],
    )
    m = await phone.reply(phone.since_connect)
    expect(
        (m.id, m.last["seq"], m.text) == (b.id, b.last["seq"], b.text), "the same message", m.last
    )
    n = await phone.ask("two")
    expect(n.last["seq"] > b.last["seq"], "a larger seq after the restart", n.last)


@case(FULL, own=True)
async def deliveries_survive_a_kill(run: Run):
    """§8: queued texts and files arrive after a crash, once and in order."""
    phone, cron, cursor = await away_with_deliveries(run, 4)
    await deliver(
        cron,
        phone.id,
        kind="document",
        mime="application/octet-stream",
        filename="q.bin",
        data="AAECAw==",
    )
    await run.server.crash_and_start()
    await phone.connect(cursor)
    _, data = await phone.next_file(phone.since_connect)
    expect(data == bytes(range(4)), "the file", data.hex())
    got = [f.get("text") for f in durable(phone, phone.since_connect)]
    expect(
        got == ["backlog 0", "backlog 1", "backlog 2", "backlog 3", None],
        "four texts, then the file",
        got,
    )


@case(FULL, own=True)
async def ids_are_remembered_over_a_kill(run: Run):
    """§3: ids of texts, files, answers and deliveries stay duplicates after a crash."""
    phone = await run.connected()
    t, f = fresh_id(), fresh_id()
    await phone.ask("once", t)
    start = phone.now()
    frame = {
        "t": "media",
        "id": f,
        "kind": "document",
        "mime": "text/plain",
        "filename": "a.txt",
        "data": "YQ==",
        "part": 0,
        "parts": 1,
    }
    await phone.send(frame)
    await phone.reply(start)
    await phone.idle(start)
    start, card = phone.now(), await phone.card("/demo approval")
    answer = {"t": "prompt", "id": "answer", "prompt_id": card["id"], "option_id": "once"}
    await phone.send(answer)
    await phone.ack_of("answer", start)
    await phone.turn_over(start)
    cron = await run.connected()
    first = await deliver(cron, phone.id, "delivered once", id="job")
    await phone.reply(start, lambda t: t == "delivered once", what="the delivery")
    await phone.idle(start)
    await run.server.crash_and_start()
    # A crash may lose the note of what was sent last, so it gives its cursor.
    await phone.connect(newest(phone))
    start = phone.now()
    await phone.say("once", t)
    await phone.send(frame)
    await phone.send(answer)
    await cron.connect()
    expect(
        await deliver(cron, phone.id, "delivered once", id="job") == first,
        "the first answer to the delivery",
        cron.recent(),
    )
    for ident in (t, f, "answer"):
        a = await phone.ack_of(ident, start)
        expect(a["t"] == "accepted" and a["duplicate"] is True, f"duplicate true for {ident}", a)
    await phone.nothing("message", "second answer", start=start)


@case(FULL, own=True)
async def a_turn_cut_by_a_kill_does_not_stay_open(run: Run):
    """§4: after a crash no message stays open: a cut one says interrupted, the indicator goes off,
    the chat continues.
    """
    phone = await run.connected()
    ident = await phone.say("/demo stream 300")
    await phone.wait(lambda f: f["t"] == "message", "the stream to begin")
    await phone.ack_of(ident)
    await run.server.crash_and_start()
    await phone.connect()
    await phone.reply(
        phone.since_connect,
        lambda t: t == " ".join(f"w{i}" for i in range(1, 301)),
        what="the stream, run again",
        timeout=30,
    )
    await phone.turn_over(phone.since_connect)
    await phone.echo("and now")
    for m in phone.chat().values():
        expect(m.final, "a final for every message that was begun", m.last)
        expect(
            m.text in (" ".join(f"w{i}" for i in range(1, 301)), "You said: and now")
            or m.last.get("interrupted") is True,
            "interrupted true on what was cut",
            m.last,
        )


@case(FULL, own=True, heavy=True)
async def a_file_on_its_way_survives_a_kill(run: Run):
    """§4: a file of which the device has one part arrives whole after a crash, under its seq."""
    phone = await run.connected()
    await phone.say("/demo file 7000000")
    first = await phone.wait("media", "the first part", timeout=60)
    await run.server.crash_and_start()
    await phone.connect({"epoch": phone.ready["resume"]["epoch"], "seq": first["seq"] - 1})
    f, data = await phone.next_file(phone.since_connect, ident=first["id"])
    expect(
        data == pattern(7_000_000) and f["seq"] == first["seq"],
        "the whole file under its seq",
        (len(data), f["seq"]),
    )
