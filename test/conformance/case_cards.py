"""Cards: their fields, how they are answered, and that one answer decides."""

from __future__ import annotations

import asyncio
import datetime
import time

from cases import CORE, FULL, Run, case
from expect import expect, fresh_id
from phone import Phone


SOON = {"MOBILE_PROMPT_SECONDS": "3"}


def card_is_whole(f: dict, phone: Phone, kind: str, option_ids: list[str]) -> None:
    expect(f["kind"] == kind, f"kind {kind}", f)
    expect(f["session"] == f"mobile:{phone.id}", f"session mobile:{phone.id}", f)
    expect(
        isinstance(f.get("timeout_seconds"), int) and 0 < f["timeout_seconds"] <= 300,
        "timeout_seconds up to 300",
        f,
    )
    expect([o.get("id") for o in f["options"]] == option_ids, f"options {option_ids}", f["options"])
    for o in f["options"]:
        expect(isinstance(o.get("label"), str) and o["label"], "a label", o)
        expect(o.get("style", "") in ("primary", "danger", ""), "style primary, danger or empty", o)


async def short_card(phone: Phone, command: str) -> dict:
    f = await phone.card(command)
    expect(f["timeout_seconds"] <= 3, "a card of MOBILE_PROMPT_SECONDS, 3 s", f)
    return f


@case(CORE)
async def an_approval_is_a_card(run: Run):
    """§7: exec_approval shows command and description. The tap is answered by prompt_done, and
    never becomes a chat message.
    """
    phone = await run.connected()
    start = phone.now()
    f = await phone.card("/demo approval")
    card_is_whole(f, phone, "exec_approval", ["once", "session", "always", "deny"])
    expect(
        f.get("command") == "rm -rf build" and f.get("description") == "Deletes the build folder",
        "command and description",
        f,
    )
    style = {o["id"]: o.get("style", "") for o in f["options"]}
    expect(
        style["once"] == "primary" and style["deny"] == "danger", "once primary, deny danger", style
    )
    done = await phone.answer(f["id"], option_id="once")
    expect(
        done["t"] == "prompt_done" and done.get("option_id") == "once" and done["expired"] is False,
        "prompt_done once",
        done,
    )
    m = await phone.reply(start)
    expect(m.text == "approval: once", "`approval: once`", m.text)
    await phone.nothing(
        lambda f: f["t"] == "message" and "You said" in f["text"],
        "answer turned into a chat message",
    )


@case(CORE)
async def a_confirmation_is_a_card(run: Run):
    """§7: slash_confirm offers once, always and cancel."""
    phone = await run.connected()
    f = await phone.card("/demo confirm")
    card_is_whole(f, phone, "slash_confirm", ["once", "always", "cancel"])
    done = await phone.answer(f["id"], option_id="always")
    expect(
        done.get("option_id") == "always" and done["expired"] is False, "prompt_done always", done
    )
    expect((await phone.reply()).text == "confirm: always", "`confirm: always`", phone.recent())


@case(CORE)
async def a_question_is_a_card(run: Run):
    """§7: clarify offers its choices as c0, c1, … and other. The agent gets the label of the
    choice.
    """
    phone = await run.connected()
    f = await phone.card("/demo clarify")
    card_is_whole(f, phone, "clarify", ["c0", "c1", "other"])
    expect(f["text"] == "Which format?", "the question", f["text"])
    expect(
        [o["label"] for o in f["options"][:2]] == ["CSV", "JSON"],
        "labels CSV and JSON",
        f["options"],
    )
    done = await phone.answer(f["id"], option_id="c1")
    expect(done["expired"] is False and done.get("option_id") == "c1", "prompt_done c1", done)
    expect((await phone.reply()).text == "clarify: JSON", "`clarify: JSON`", phone.recent())


@case(CORE)
async def own_words_answer_a_question(run: Run):
    """§7: a question takes own words, as option other with text, or as text alone. prompt_done says
    other.
    """
    phone = await run.connected()
    for fields in (
        {"option_id": "other", "text": "YAML, пожалуйста"},
        {"text": "YAML, пожалуйста"},
    ):
        start = phone.now()
        f = await phone.card("/demo clarify")
        done = await phone.answer(f["id"], **fields)
        expect(
            done["t"] == "prompt_done"
            and done["expired"] is False
            and done.get("option_id") == "other",
            "prompt_done other, not expired",
            done,
        )
        m = await phone.reply(start)
        expect(m.text == "clarify: YAML, пожалуйста", "the own words", m.text)


@case(FULL)
async def other_without_text_keeps_the_question_open(run: Run):
    """§7: other without text gets bad_frame. The question stays open and can still be answered."""
    phone = await run.connected()
    f = await phone.card("/demo clarify")
    start = phone.now()
    for empty in ({}, {"text": ""}, {"text": None}):
        e = await phone.answer(f["id"], option_id="other", **empty)
        expect(
            e["t"] == "error" and e["code"] == "bad_frame" and e.get("ref") == f["id"],
            "error bad_frame with ref, the card's id",
            e,
        )
    await phone.nothing(
        lambda x: x["t"] == "prompt_done"
        or x["t"] == "message"
        and x["text"].startswith("clarify"),
        "decision yet",
        start=start,
    )
    done = await phone.answer(f["id"], option_id="other", text="TOML")
    expect(
        done["t"] == "prompt_done" and done["expired"] is False, "prompt_done, not expired", done
    )
    expect(
        (await phone.reply(match=lambda t: t.startswith("clarify"))).text == "clarify: TOML",
        "`clarify: TOML`",
        phone.recent(),
    )


@case(CORE)
async def an_invented_option_becomes_the_safe_one(run: Run):
    """§7: an option that the card lacks counts as deny for an approval and as cancel for a
    confirmation.
    """
    phone = await run.connected()
    for command, safe, text in (
        ("/demo approval", "deny", "approval: deny"),
        ("/demo confirm", "cancel", "confirm: cancel"),
    ):
        for invented in ("ONCE", "yes", "once "):
            start = phone.now()
            f = await phone.card(command)
            done = await phone.answer(f["id"], option_id=invented)
            expect(
                done["t"] == "prompt_done" and done.get("option_id") == safe,
                f"prompt_done {safe} for {invented!r}",
                done,
            )
            m = await phone.reply(start)
            expect(m.text == text, f"`{text}`", m.text)


@case(FULL)
async def an_invented_choice_keeps_the_question_open(run: Run):
    """§7: a question has no safe option: an invented choice gets bad_frame and the card stays open."""
    phone = await run.connected()
    f = await phone.card("/demo clarify")
    e = await phone.answer(f["id"], option_id="c9")
    expect(e["t"] == "error" and e["code"] == "bad_frame", "error bad_frame", e)
    expect(e.get("ref") == f["id"], "ref, the card's id", e)
    done = await phone.answer(f["id"], option_id="c0")
    expect(
        done["t"] == "prompt_done" and done.get("option_id") == "c0",
        "prompt_done c0 afterwards",
        done,
    )
    expect((await phone.reply()).text == "clarify: CSV", "`clarify: CSV`", phone.recent())


@case(FULL)
async def an_empty_answer_keeps_the_card_open(run: Run):
    """§7: an answer without option_id and text gets bad_frame with ref, for every kind. The card
    stays open.
    """
    phone = await run.connected()
    for command, option in (
        ("/demo approval", "session"),
        ("/demo confirm", "once"),
        ("/demo clarify", "c0"),
    ):
        f = await phone.card(command)
        for fields in ({}, {"option_id": None, "text": None}):
            start = phone.now()
            e = await phone.answer(f["id"], **fields)
            expect(
                e["t"] == "error" and e["code"] == "bad_frame" and e.get("ref") == f["id"],
                f"error bad_frame with ref for {command}",
                e,
            )
        done = await phone.answer(f["id"], option_id=option)
        expect(
            done["t"] == "prompt_done"
            and done.get("option_id") == option
            and done["expired"] is False,
            f"prompt_done {option}",
            done,
        )
        await phone.turn_over(start)


@case(FULL)
async def an_answer_with_an_id_has_a_receipt(run: Run):
    """§3: an answer with an id gets accepted beside prompt_done and is never counted twice. One
    without gets prompt_done alone.
    """
    phone = await run.connected()
    start, f, ident = phone.now(), await phone.card("/demo approval"), fresh_id("answer")
    before = phone.now()
    done = await phone.answer(f["id"], option_id="once", id=ident)
    expect(done["t"] == "prompt_done" and done.get("option_id") == "once", "prompt_done once", done)
    a = await phone.ack_of(ident, before)
    expect(
        a["t"] == "accepted" and a["duplicate"] is False and a.get("queued") is False,
        "accepted, not duplicate",
        a,
    )
    await phone.turn_over(start)
    before = phone.now()
    await phone.send({"t": "prompt", "id": ident, "prompt_id": f["id"], "option_id": "once"})
    a = await phone.ack_of(ident, before)
    expect(
        a["t"] == "accepted" and a["duplicate"] is True,
        "duplicate true for the same answer again",
        a,
    )
    g = await phone.card("/demo confirm")
    before = phone.now()
    await phone.send({"t": "prompt", "id": ident, "prompt_id": g["id"], "option_id": "always"})
    a = await phone.ack_of(ident, before)
    expect(
        a["t"] == "accepted" and a["duplicate"] is True,
        "duplicate true for the used id on another card",
        a,
    )
    await phone.nothing("prompt_done", "decision by a duplicate", start=before)
    before = phone.now()
    done = await phone.answer(g["id"], option_id="cancel")
    expect(
        done["t"] == "prompt_done" and done.get("option_id") == "cancel", "prompt_done cancel", done
    )
    await phone.reply(before, lambda t: t == "confirm: cancel", what="`confirm: cancel`")
    expect(
        not any(x["t"] == "accepted" for x in phone.frames[before:]),
        "no receipt for an answer without id",
        phone.recent(before),
    )


@case(FULL)
async def refused_answers_name_their_frame(run: Run):
    """§10: ref names the id of a rejected answer, or the card where the answer has no id. The id
    stays free.
    """
    a, b = await run.connected(), await run.connected()
    f = await a.card("/demo clarify")
    for phone, code, fields in (
        (b, "forbidden", {"option_id": "c0"}),
        (a, "bad_frame", {"option_id": "other"}),
        (a, "bad_frame", {"option_id": "c9"}),
        (a, "bad_frame", {}),
    ):
        e = await phone.answer(f["id"], **fields)
        expect(
            e["t"] == "error" and e["code"] == code and e.get("ref") == f["id"],
            f"error {code} with ref, the prompt_id",
            e,
        )
        e = await phone.answer(f["id"], id="answer-1", **fields)
        expect(
            e["t"] == "error" and e["code"] == code and e.get("ref") == "answer-1",
            f"error {code} with ref answer-1",
            e,
        )
    start = a.now()
    done = await a.answer(f["id"], id="answer-1", option_id="c1")
    expect(done["t"] == "prompt_done" and done.get("option_id") == "c1", "prompt_done c1", done)
    r = await a.ack_of("answer-1", start)
    expect(r["t"] == "accepted" and r["duplicate"] is False, "accepted, no duplicate", r)


@case(FULL)
async def two_cards_are_open_at_once(run: Run):
    """§7: several cards may be open. Each is answered by its id, and all are shown again after a
    reconnect.
    """
    for order in (("clarify", "approval"), ("approval", "clarify")):
        phone, ident = await run.connected(), fresh_id()
        await phone.say("/demo two-cards", ident)
        await phone.wait(
            lambda f: f["t"] == "prompt"
            and len({x["id"] for x in phone.frames if x["t"] == "prompt"}) == 2,
            "two cards",
        )
        cards = {f["kind"]: f for f in phone.frames if f["t"] == "prompt"}
        expect(
            sorted(cards) == ["clarify", "exec_approval"],
            "an approval and a question",
            sorted(cards),
        )
        await phone.connect()
        await phone.wait(
            lambda f: f["t"] == "prompt"
            and len({x["id"] for x in phone.frames[phone.since_connect :] if x["t"] == "prompt"})
            == 2,
            "both cards again",
            start=phone.since_connect,
        )
        expect(
            {f["id"] for f in phone.frames[phone.since_connect :] if f["t"] == "prompt"}
            == {f["id"] for f in cards.values()},
            "the same two cards",
            phone.recent(phone.since_connect),
        )
        for kind in order:
            card, option, text = (
                (cards["clarify"], "c1", "clarify: JSON")
                if kind == "clarify"
                else (cards["exec_approval"], "session", "approval: session")
            )
            start = phone.now()
            done = await phone.answer(card["id"], option_id=option)
            expect(
                done["t"] == "prompt_done" and done.get("option_id") == option,
                f"prompt_done {option}",
                done,
            )
            m = await phone.reply(start)
            expect(
                m.text == text and m.last.get("reply_to") == ident,
                f"`{text}`, reply_to {ident}",
                m.last,
            )
        await phone.turn_over()
        got = [m.text for m in phone.chat().values() if m.final]
        expect(len(got) == 2, "two texts, in the order answered", got)


@case(CORE)
async def an_unknown_card_is_answered_as_expired(run: Run):
    """§7: an answer to an unknown card gets prompt_done{expired:true}, and the connection
    continues.
    """
    phone = await run.connected()
    ident = fresh_id("card")
    done = await phone.answer(ident, option_id="once")
    expect(done["t"] == "prompt_done" and done["expired"] is True, "prompt_done expired", done)
    await phone.echo("go on")


@case(CORE)
async def only_its_device_answers_a_card(run: Run):
    """§7: another device that answers a card gets forbidden. The card stays open for its own
    device.
    """
    a, b = await run.connected(), await run.connected()
    f = await a.card("/demo approval")
    e = await b.answer(f["id"], option_id="once")
    expect(e["t"] == "error" and e["code"] == "forbidden", "error forbidden", e)
    await b.echo("b goes on")
    expect(not any(x["t"] == "prompt_done" for x in a.frames), "the card still open", a.recent())
    done = await a.answer(f["id"], option_id="session")
    expect(
        done["t"] == "prompt_done" and done.get("option_id") == "session",
        "prompt_done session",
        done,
    )
    expect((await a.reply()).text == "approval: session", "`approval: session`", a.recent())


@case(FULL)
async def the_first_answer_counts(run: Run):
    """§7: one answer decides a card. Later ones get the same prompt_done."""
    phone = await run.connected()
    f = await phone.card("/demo approval")
    start = phone.now()
    for option in ("deny", "once", "always", "deny"):
        await phone.send({"t": "prompt", "prompt_id": f["id"], "option_id": option})
    await phone.ping()
    m = await phone.reply(start)
    expect(m.text == "approval: deny", "`approval: deny`", m.text)
    await phone.turn_over(start)
    again = await phone.answer(f["id"], option_id="once")
    expect(
        again["t"] == "prompt_done"
        and again.get("option_id") == "deny"
        and again["expired"] is False,
        "the same prompt_done",
        again,
    )
    done = [x.get("option_id") for x in phone.frames if x["t"] == "prompt_done"]
    expect(set(done) == {"deny"} and len(done) >= 2, "deny in every prompt_done", done)
    await phone.nothing(lambda x: x["t"] == "message", "second result")


@case(FULL)
async def cards_have_fresh_ids(run: Run):
    """§7: card ids are never reused. prompt_done names the card in id and prompt_id, and expires_at
    is a time.
    """
    phone = await run.connected()
    seen = []
    for command in ("/demo approval", "/demo clarify", "/demo confirm", "/demo approval"):
        start = phone.now()
        f = await phone.card(command)
        seen.append(f["id"])
        left = datetime.datetime.fromisoformat(f["expires_at"]).timestamp() - time.time()
        expect(abs(left - f["timeout_seconds"]) < 60, "expires_at in timeout_seconds from now", f)
        expect(isinstance(f.get("seq"), int), "a seq", f)
        done = await phone.answer(f["id"], option_id=f["options"][0]["id"])
        expect(
            done.get("id") == done["prompt_id"] == f["id"] and isinstance(done.get("seq"), int),
            "id, prompt_id and seq",
            done,
        )
        await phone.turn_over(start)
    expect(len(set(seen)) == 4, "four different ids", seen)


@case(FULL)
async def an_open_card_is_shown_again(run: Run):
    """§7: after a reconnect an open card comes again with its first seq and the seconds left."""
    phone = await run.connected()
    f = await phone.card("/demo approval")
    await asyncio.sleep(1.2)
    await phone.connect()
    again = await phone.wait("prompt", "the card again", start=phone.since_connect)
    expect(again["id"] == f["id"] and again["options"] == f["options"], "the same card", again)
    expect(again.get("seq") == f["seq"], f"its own first seq {f['seq']}", again.get("seq"))
    expect(
        f["timeout_seconds"] - 60 <= again["timeout_seconds"] < f["timeout_seconds"],
        "fewer seconds than before",
        again["timeout_seconds"],
    )
    done = await phone.answer(f["id"], option_id="once")
    expect(done["t"] == "prompt_done" and done.get("option_id") == "once", "prompt_done once", done)
    expect((await phone.reply()).text == "approval: once", "`approval: once`", phone.recent())
    await phone.connect()
    await phone.nothing("prompt", "closed card shown again", start=phone.since_connect)


@case(FULL)
async def a_card_and_a_plain_text(run: Run):
    """§7 and §3: a typed word never answers a card. It waits for its turn, and both get their
    result.
    """
    phone = await run.connected()
    f = await phone.card("/demo approval")
    ident = await phone.say("once")
    await phone.ack_of(ident)
    done = await phone.answer(f["id"], option_id="deny")
    expect(done["t"] == "prompt_done" and done.get("option_id") == "deny", "prompt_done deny", done)
    await phone.reply(match=lambda t: t == "approval: deny", what="`approval: deny`")
    await phone.reply(match=lambda t: t == "You said: once", what="an answer to the typed word")
    got = [m.text for m in phone.chat().values() if m.final]
    expect(
        got == ["approval: deny", "You said: once"],
        "the turn that ran first, then the typed word",
        got,
    )


@case(FULL, SOON)
async def an_expired_card_says_so(run: Run):
    """§7: at its expiry a card gets prompt_done{expired:true}, the agent the safe option, and the
    chat continues.
    """
    phone = await run.connected()
    f = await short_card(phone, "/demo approval")
    done = await phone.wait("prompt_done", "prompt_done at the expiry")
    expect(done["prompt_id"] == f["id"] and done["expired"] is True, "prompt_done expired", done)
    m = await phone.reply()
    expect(m.text == "approval: deny", "the safe option for the agent", m.text)
    late = await phone.answer(f["id"], option_id="once")
    expect(
        late["t"] == "prompt_done" and late["expired"] is True,
        "prompt_done expired for a late answer",
        late,
    )
    await phone.echo("go on")
    expect(
        phone.ready["capabilities"].get("prompt_seconds") == 3,
        "prompt_seconds 3 in capabilities",
        phone.ready["capabilities"].get("prompt_seconds"),
    )


@case(FULL, SOON)
async def a_card_expires_while_nobody_is_there(run: Run):
    """§7: a card expires without its device too. A device that returns is told, and the agent did
    not wait.
    """
    phone = await run.connected()
    f = await short_card(phone, "/demo confirm")
    await phone.drop()
    await asyncio.sleep(f["timeout_seconds"] + 0.5)
    await phone.connect()
    m = await phone.reply(phone.since_connect, what="`confirm: cancel` after the reconnect")
    expect(m.text == "confirm: cancel", "the safe option for the agent", m.text)
    late = await phone.answer(f["id"], option_id="once")
    expect(late["t"] == "prompt_done" and late["expired"] is True, "prompt_done expired", late)


@case(FULL, own=True)
async def a_card_outlives_a_restart(run: Run):
    """§7: after a crash of the server an open card comes again, and its answer reaches the agent."""
    phone = await run.connected()
    f = await phone.card("/demo approval")
    await asyncio.sleep(1.2)
    await run.server.crash_and_start()
    await phone.connect()
    again = await phone.wait("prompt", "the card after the restart", start=phone.since_connect)
    expect(
        (again["id"], again["seq"], again["options"]) == (f["id"], f["seq"], f["options"]),
        "the same card",
        again,
    )
    expect(
        f["timeout_seconds"] - 60 <= again["timeout_seconds"] < f["timeout_seconds"],
        "fewer seconds than before",
        again["timeout_seconds"],
    )
    done = await phone.answer(again["id"], option_id="once")
    expect(
        done["t"] == "prompt_done" and done.get("option_id") == "once" and done["expired"] is False,
        "prompt_done once",
        done,
    )
    m = await phone.reply(
        phone.since_connect, lambda t: t.startswith("approval:"), what="`approval: once`"
    )
    expect(m.text == "approval: once", "`approval: once`", m.text)
    await phone.turn_over(phone.since_connect)
    expect(
        len({x["id"] for x in phone.frames if x["t"] == "prompt"}) == 1,
        "one card in all",
        phone.recent(phone.since_connect),
    )


@case(FULL, own=True)
async def a_decision_outlives_a_restart(run: Run):
    """§7: a decision is durable. After a crash another answer gets the first decision, and so does
    the agent.
    """
    phone = await run.connected()
    f = await phone.card("/demo approval")
    await phone.answer(f["id"], option_id="deny")
    await run.server.crash_and_start()
    await phone.connect()
    done = await phone.answer(f["id"], option_id="always")
    expect(done["t"] == "prompt_done", "prompt_done", done)
    expect(
        done.get("option_id") == "deny" and done["expired"] is False,
        "the first decision, deny",
        done,
    )
    await phone.reply(match=lambda t: t == "approval: deny", what="`approval: deny`")
    await phone.nothing(
        lambda x: x["t"] == "message" and x["text"] == "approval: always",
        "second decision",
        start=phone.since_connect,
    )
