"""The conversation: texts up, replies down, ids, acknowledgements and stop."""

from __future__ import annotations

import json

from cases import CORE, FULL, Run, case
from expect import MIB, b64, expect, fresh_id, wav


@case(CORE)
async def a_text_is_answered(run: Run):
    """§3 and §4: a text goes up, one message with final:true comes down."""
    phone = await run.connected()
    m = await phone.echo("hello there")
    expect(m.finals == 1, "one final", m.finals)


@case(CORE)
async def odd_letters_come_back_unchanged(run: Run):
    """§1: frames are JSON in UTF-8. Every script, emoji and escape survives the round trip."""
    phone = await run.connected()
    for text in (
        "Какой формат нужен?",
        "👨‍👩‍👧‍👦 🇩🇪 👍🏽 e\u0301 日本語",
        "שלום עולם مرحبا",
        'back\\slash "quoted" <b>&amp;</b> 100%',
    ):
        m = await phone.ask(text)
        expect(m.text == "You said: " + text, f"You said: {text}", m.text)
    start = phone.now()
    await phone.send(
        json.dumps({"t": "text", "id": fresh_id(), "text": "escaped 😀 ü"}, ensure_ascii=True)
    )
    expect(
        (await phone.reply(start)).text == "You said: escaped 😀 ü",
        "escapes decoded",
        phone.recent(start),
    )


@case(CORE)
async def a_failed_turn_ends_in_words(run: Run):
    """§4: a failed turn ends with a message that says so, its indicator goes off, and the next text
    is answered.
    """
    phone = await run.connected()
    start = phone.now()
    m = await phone.ask("/demo fail")
    expect(m.text.strip(), "a sentence that says it failed", m.text)
    await phone.turn_over(start)
    await phone.idle(start)
    await phone.echo("and now")


@case(CORE)
async def the_same_id_is_taken_once(run: Run):
    """§3: a client may send a message again under its id, also on a new connection. It is answered
    once.
    """
    phone = await run.connected()
    ident, start = fresh_id(), phone.now()
    await phone.ask("only once", ident)
    await phone.say("only once", ident)
    await phone.connect()
    await phone.say("only once", ident)
    await phone.echo("something new")
    done = [x.text for x in phone.chat(start).values() if x.final]
    expect(done.count("You said: only once") == 1, "one answer", done)


@case(CORE)
async def a_text_without_id_is_taken(run: Run):
    """§3: a text without an id is answered too."""
    phone = await run.connected()
    start = phone.now()
    await phone.send({"t": "text", "text": "nameless"})
    expect(
        (await phone.reply(start)).text == "You said: nameless", "the reply", phone.recent(start)
    )


@case(FULL)
async def no_id_no_protection(run: Run):
    """§3 and §4: an empty or null id is no id. Each such frame counts, and its accepted and its
    reply name none.
    """
    phone = await run.connected()
    for fields in ({}, {"id": ""}, {"id": None}, {"id": ""}):
        start = phone.now()
        await phone.send({"t": "text", "text": "nameless", **fields})
        m = await phone.reply(start)
        expect(m.text == "You said: nameless", f"the reply for {fields}", m.text)
        expect("reply_to" not in m.last, "no reply_to", m.last)
        f = await phone.wait("accepted", "an ack", start=start)
        expect(
            "id" not in f and f["duplicate"] is False and f.get("queued") is False,
            "accepted without id, no duplicate",
            f,
        )
        start = phone.now()
        await phone.send(
            {
                **{
                    "t": "media",
                    "kind": "document",
                    "mime": "text/plain",
                    "filename": "a.txt",
                    "data": "YQ==",
                    "part": 0,
                    "parts": 1,
                },
                **fields,
            }
        )
        await phone.reply(
            start,
            lambda t: t.startswith("received document a.txt 1 "),
            what="`received document a.txt 1 …`",
        )
        f = await phone.wait("accepted", "an ack", start=start)
        expect("id" not in f and f["duplicate"] is False, "accepted without id, no duplicate", f)


@case(FULL)
async def one_id_is_one_frame_of_any_kind(run: Run):
    """§3: an id that was accepted is a duplicate for every frame type and content. A rejected frame
    leaves its id free.
    """
    phone = await run.connected()
    ident = fresh_id()
    await phone.send({"t": "text", "id": ident, "text": "  "})
    await phone.error("bad_frame", ident)
    await phone.ask("first with this id", ident)
    f = await phone.card("/demo approval")
    start = phone.now()
    for frame in (
        {"t": "text", "text": "other words"},
        {
            "t": "media",
            "kind": "document",
            "mime": "text/plain",
            "filename": "a.txt",
            "data": "YQ==",
            "part": 0,
            "parts": 1,
        },
        {"t": "audio", "format": "wav", "data": b64(wav())},
        {"t": "prompt", "prompt_id": f["id"], "option_id": "once"},
    ):
        before = phone.now()
        await phone.send({**frame, "id": ident})
        a = await phone.ack_of(ident, before)
        expect(
            a["t"] == "accepted" and a["duplicate"] is True,
            f"duplicate true for a {frame['t']} frame",
            a,
        )
    await phone.nothing(
        lambda f: f["t"] in ("message", "prompt_done"), "effect of a duplicate", start=start
    )
    done = await phone.answer(f["id"], option_id="deny", id=fresh_id())
    expect(
        done["t"] == "prompt_done" and done.get("option_id") == "deny",
        "the card still open, prompt_done deny",
        done,
    )


@case(CORE)
async def two_replies_are_two_messages(run: Run):
    """§4: two replies to one text are two messages with two ids."""
    phone = await run.connected()
    start = phone.now()
    await phone.say("/demo twice")
    await phone.reply(start, lambda t: t == "two", what="`two`")
    done = [m for m in phone.chat(start).values() if m.final]
    expect([m.text for m in done] == ["one", "two"], "one, then two", [m.text for m in done])


@case(CORE)
async def the_agent_may_speak_first(run: Run):
    """§4: a message that nobody asked for arrives like any other."""
    phone = await run.connected()
    start = phone.now()
    await phone.say("/demo say 1 the kettle boils")
    await phone.reply(start, lambda t: t == "in 1 s", what="`in 1 s`")
    await phone.reply(start, lambda t: t == "the kettle boils", what="the announced text")


@case(CORE)
async def unknown_frames_do_no_harm(run: Run):
    """§1: an unknown frame type gets unsupported_frame, and the connection continues."""
    phone = await run.connected()
    start = phone.now()
    await phone.send({"t": "hologram", "id": "h1", "data": [1, 2]})
    await phone.error("unsupported_frame", start=start)
    await phone.echo("still here")


@case(FULL)
async def unsupported_frame_names_the_frame(run: Run):
    """§1 and §10: unsupported_frame carries the id of the frame in ref, and a sentence."""
    phone = await run.connected()
    await phone.send({"t": "hologram", "id": "h1"})
    f = await phone.error("unsupported_frame", "h1")
    expect(len(f["message"].split()) >= 3, "one plain sentence", f["message"])


@case(CORE)
async def unknown_fields_are_ignored(run: Run):
    """§1: unknown fields of a known frame change nothing."""
    phone = await run.connected()
    await phone.echo(
        "with extras", future={"a": [1, {"b": None}]}, priority=7, edit="maybe", reply_to="m0"
    )


@case(FULL)
async def the_reply_names_what_it_answers(run: Run):
    """§4: every final of a turn carries reply_to, the id of the text that began it. An unasked
    message carries none.
    """
    phone = await run.connected()
    ident = fresh_id()
    m = await phone.ask("which one", ident)
    expect(m.last.get("reply_to") == ident, f"reply_to {ident}", m.last)
    m = await phone.ask("/demo long 9000", ident := fresh_id())
    expect(
        m.last.get("reply_to") == ident,
        f"reply_to {ident} on the last chunk",
        m.last.get("reply_to"),
    )
    start, ident = phone.now(), fresh_id()
    await phone.say("/demo twice", ident)
    await phone.reply(start, lambda t: t == "two", what="`two`")
    got = {m.text: m.last.get("reply_to") for m in phone.chat(start).values()}
    expect(got == {"one": ident, "two": ident}, f"reply_to {ident} on both finals", got)
    start, ident = phone.now(), fresh_id()
    await phone.say("/demo say 1 by the way", ident)
    m = await phone.reply(start, lambda t: t == "in 1 s", what="`in 1 s`")
    expect(m.last.get("reply_to") == ident, f"reply_to {ident}", m.last)
    m = await phone.reply(start, lambda t: t == "by the way", what="`by the way`")
    expect("reply_to" not in m.last, "no reply_to on what nobody asked for", m.last)


@case(FULL)
async def every_message_is_receipted(run: Run):
    """§3: each message is acknowledged by accepted{duplicate:false, queued:false}. Its id sent
    again gets duplicate:true.
    """
    phone = await run.connected()
    ident = await phone.say("an ack please")
    f = await phone.ack_of(ident)
    expect(
        f["t"] == "accepted" and f["duplicate"] is False and f.get("queued") is False,
        "accepted, not duplicate, not queued",
        f,
    )
    await phone.reply()
    start = phone.now()
    await phone.say("an ack please", ident)
    f = await phone.ack_of(ident, start)
    expect(f["t"] == "accepted" and f["duplicate"] is True, "accepted with duplicate true", f)
    await phone.say("other words, same id", ident)
    await phone.nothing("message", "second turn for one id", start=start)


@case(FULL)
async def the_receipt_comes_before_the_reply(run: Run):
    """§3: accepted comes before the first frame of the reply."""
    phone = await run.connected()
    for _ in range(5):
        start = phone.now()
        ident = await phone.say("quick")
        await phone.reply(start)
        order = [
            f["t"]
            for f in phone.frames[start:]
            if f["t"] == "message" or f["t"] == "accepted" and f["id"] == ident
        ]
        expect(order[0] == "accepted", "accepted first", order)


@case(FULL)
async def texts_are_answered_in_order(run: Run):
    """§3: the agent gets texts in the order accepted, also when they arrive all at once."""
    phone = await run.connected()
    for i in range(10):
        await phone.say(f"number {i}")
    await phone.reply(
        match=lambda t: t == "You said: number 9", timeout=40, what="the tenth answer"
    )
    order = [m.text for m in phone.chat().values() if m.final]
    expect(order == [f"You said: number {i}" for i in range(10)], "ten answers in order", order)


@case(FULL)
async def bad_texts_are_refused(run: Run):
    """§3: an empty, blank, missing or wrongly typed text gets bad_frame with ref and starts no
    turn.
    """
    phone = await run.connected()
    for n, fields in enumerate(
        (
            {"text": ""},
            {"text": " \n\t\u00a0"},
            {},
            {"text": None},
            {"text": 7},
            {"text": ["a"]},
            {"text": {"text": "a"}},
        )
    ):
        start = phone.now()
        await phone.send({"t": "text", "id": f"bad-{n}", **fields})
        await phone.error("bad_frame", f"bad-{n}", start)
    await phone.echo("fine")
    expect(
        len(phone.chat()) == 1,
        "no turn for a refused text",
        [m.text for m in phone.chat().values()],
    )


@case(FULL)
async def bad_ids_are_refused(run: Run):
    """§3: an id is 1 to 128 printable characters. Any other gets bad_frame and starts no turn."""
    phone = await run.connected()
    for bad in (7, 2**53 + 1, 1.5, True, {"a": 1}, ["x"], "x" * 129, "a\nb", "a\u0000b"):
        start = phone.now()
        await phone.send({"t": "text", "id": bad, "text": "must not run"})
        await phone.error("bad_frame", start=start)
    await phone.echo("fine", "x" * 128)
    expect(
        len(phone.chat()) == 1, "no turn for a refused id", [m.text for m in phone.chat().values()]
    )


@case(FULL, heavy=True)
async def a_text_may_have_one_mebibyte(run: Run):
    """§3: a text has up to 1 MiB of UTF-8. One byte more gets too_big, and the chat continues."""
    phone = await run.connected()
    big = "é" * (MIB // 2)
    start = phone.now()
    await phone.say(big)
    m = await phone.reply(start, timeout=60)
    expect(m.text == "You said: " + big, "1 MiB back", f"{len(m.text)} characters")
    start = phone.now()
    ident = await phone.say(big + "x")
    await phone.error("too_big", ident, start)
    await phone.echo("small again")


@case(FULL)
async def ping_frames_are_answered(run: Run):
    """§1: ping gets pong with its id and the server's time."""
    phone = await run.connected()
    f = await phone.ping()
    expect(f.get("time"), "a time", f)


@case(FULL)
async def stop_ends_the_turn(run: Run):
    """§3 and §4: stop ends the running turn and its indicator at once. Without a turn it does
    nothing.
    """
    phone = await run.connected()
    for with_id in (False, True):
        start = phone.now()
        await phone.say("/demo slow 60")
        await phone.wait(lambda f: f["t"] == "typing" and not f.get("stop"), "typing", start=start)
        await phone.send({"t": "stop", "id": fresh_id()} if with_id else {"t": "stop"})
        m = await phone.reply(start, timeout=10)
        expect(m.text == "stopped", "`stopped`", m.text)
        await phone.turn_over(start)
    await phone.send({"t": "stop"})
    expect(
        (await phone.ask("/demo slow 1")).text == "done after 1 s",
        "a stop with nothing to stop to do nothing",
        phone.recent(start),
    )


@case(CORE)
async def devices_do_not_hear_each_other(run: Run):
    """§2: each device has a session of its own and hears nothing of others."""
    a, b = await run.connected(), await run.connected()
    await a.ask("for a alone")
    await b.ask("for b alone")
    for phone, own in ((a, "You said: for a alone"), (b, "You said: for b alone")):
        expect(
            [m.text for m in phone.chat().values()] == [own],
            f"only {own}",
            [m.text for m in phone.chat().values()],
        )


@case(FULL, own=True)
async def an_agent_that_is_away_keeps_its_queue(run: Run):
    """§2 and §3: while the agent is away, devices are told, messages are accepted with queued:true,
    and answered in order later.
    """
    phone, other = await run.connected(), await run.connected()
    await phone.ask("/demo away 4")
    for x in (phone, other):
        f = await x.wait("capabilities", "a capabilities frame", timeout=5)
        expect(
            f.get("agent") == "away" and isinstance(f.get("capabilities"), dict), "agent away", f
        )
    late = await run.connected()
    expect(late.ready.get("agent") == "away", "agent away in a new ready", late.ready)
    start, ids = phone.now(), []
    for i in range(3):
        ids.append(await phone.say(f"waiting {i}"))
        f = await phone.ack_of(ids[-1], start)
        expect(
            f["t"] == "accepted" and f["duplicate"] is False and f.get("queued") is True,
            "accepted, queued true",
            f,
        )
    before = phone.now()
    await phone.say("waiting 0", ids[0])
    f = await phone.ack_of(ids[0], before)
    expect(f["t"] == "accepted" and f["duplicate"] is True, "duplicate true while it waits", f)
    expect(not phone.chat(start), "no answer while the agent is away", phone.recent(start))
    for x in (phone, other, late):
        await x.wait(
            lambda f: f["t"] == "capabilities" and f.get("agent") == "online",
            "agent online",
            timeout=10,
        )
    await phone.reply(start, lambda t: t == "You said: waiting 2", what="the third answer")
    got = [m.text for m in phone.chat(start).values() if m.final]
    expect(
        got == [f"You said: waiting {i}" for i in range(3)],
        "three answers in order, each once",
        got,
    )
    start = phone.now()
    f = await phone.ack_of(await phone.say("and now"), start)
    expect(f.get("queued") is False, "queued false again", f)
