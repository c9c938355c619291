"""Replies as they are written: chunks, edits, deltas, tool frames and indicators."""

from __future__ import annotations

import re
import unicodedata

from cases import CORE, FULL, Run, case
from expect import brief, expect
from phone import Phone


def splits_a_cluster(before: str, after: str) -> bool:
    """Whether a cut here falls inside a grapheme cluster, by the rules that matter for chat."""
    if not before or not after:
        return False
    a, b = before[-1], after[0]
    if b in "\u200d\ufe0f\ufe0e" or a == "\u200d" or unicodedata.category(b) in ("Mn", "Me", "Mc"):
        return True
    if "\U0001F3FB" <= b <= "\U0001F3FF" or (a, b) == ("\r", "\n"):
        return True
    flags = len(before) - len(before.rstrip("".join(map(chr, range(0x1F1E6, 0x1F200)))))
    return flags % 2 == 1 and "\U0001F1E6" <= b <= "\U0001F1FF"


def expect_chunks(frames: list[dict], whole: str | None, least=2) -> str:
    """§4: checks the chunks of a message that is not streamed. Returns the joined text."""
    total = frames[0]["chunk"]["total"]
    expect(
        len(frames) == total and total >= least, f"{total} frames, at least {least}", len(frames)
    )
    expect(
        [f["chunk"]["index"] for f in frames] == list(range(total)),
        "chunk.index from 0 upward",
        [f["chunk"] for f in frames],
    )
    expect(
        {f["chunk"]["total"] for f in frames} == {total},
        "one chunk.total in all",
        [f["chunk"] for f in frames],
    )
    expect(
        [f["final"] for f in frames] == [False] * (total - 1) + [True],
        "final on the last chunk only",
        [f["final"] for f in frames],
    )
    expect(
        len({f.get("seq") for f in frames}) == 1,
        "one seq for all chunks",
        [f.get("seq") for f in frames],
    )
    texts = [f["text"] for f in frames]
    joined = "".join(texts)
    expect(
        whole is None or joined == whole,
        "the chunks to join to the exact text",
        f"{len(joined)} characters",
    )
    for i in range(1, total):
        expect(
            not splits_a_cluster("".join(texts[:i]), texts[i]),
            "no cut inside a grapheme cluster",
            ascii(texts[i - 1][-12:] + " | " + texts[i][:12]),
        )
    return joined


@case(CORE)
async def a_long_reply_comes_in_chunks(run: Run):
    """§4: a long reply comes as chunks of one message, final on the last. Joined they are the exact
    text of the demo agent.
    """
    phone = await run.connected()
    start = phone.now()
    await phone.say("/demo long 20000")
    m = await phone.reply(start)
    expect(
        not any(f.get("edit") for f in m.frames),
        "no edit marks in an unstreamed reply",
        m.frames[0].get("edit"),
    )
    joined = expect_chunks(m.frames, None)
    expect(len(joined) == 20000, "20000 characters", len(joined))
    lines = joined.split("\n")
    found = [re.match(r"(\d+)(?!\d)", line) for line in lines[:-1]]
    numbers = [int(m[1]) if m else -1 for m in found]
    expect(
        numbers == list(range(1, 251)),
        "250 lines that start with their numbers from 1",
        brief(str(numbers[:20])),
    )
    expect(
        {len(line) for line in lines[:-1]} == {79},
        "lines of 79 characters",
        sorted({len(line) for line in lines[:-1]}),
    )
    odd = [
        n
        for n, line in enumerate(lines, 1)
        if "\u200d" in line and any("\U0001F1E6" <= ch <= "\U0001F1FF" for ch in line)
    ]
    expect(
        len(odd) == 25 and all(b - a == 10 for a, b in zip(odd, odd[1:])),
        "an emoji family and a flag in every tenth line",
        odd,
    )
    again = await phone.ask("/demo long 20000")
    expect(again.text == joined, "the same bytes a second time", f"{len(again.text)} characters")


@case(FULL)
async def chunks_are_cut_at_good_places(run: Run):
    """§4: a chunk has at most 4,000 code points and ends between grapheme clusters, at the end of a
    line or word.
    """
    phone = await run.connected()
    for n in (4001, 12345, 50000):
        m = await phone.ask(f"/demo long {n}")
        joined = expect_chunks(m.frames, None)
        expect(len(joined) == n, f"{n} code points", len(joined))
        texts = [f["text"] for f in m.frames]
        expect(
            all(len(t) <= 4000 for t in texts),
            "chunks of 4,000 code points at most",
            [len(t) for t in texts],
        )
        for a, b in zip(texts, texts[1:]):
            expect(
                a[-1].isspace() or b[0].isspace(),
                "a cut at a line or word end",
                ascii(a[-10:] + "|" + b[:10]),
            )
    m = await phone.ask("/demo long 4000")
    expect(
        len(m.frames) == 1 and m.frames[0]["chunk"] == {"index": 0, "total": 1},
        "one frame for 4,000 characters",
        m.frames[0].get("chunk"),
    )


@case(CORE)
async def a_streamed_reply_edits_one_message(run: Run):
    """§4: a streamed reply is one message whose edits carry the whole text so far. final:true ends
    it.
    """
    phone = await run.connected()
    start = phone.now()
    await phone.say("/demo stream 150")
    m = await phone.reply(start)
    whole = " ".join(f"w{i}" for i in range(1, 151))
    expect(m.text == whole, "w1 … w150", m.text)
    expect(len(m.frames) >= 3, "several frames", len(m.frames))
    for f in m.frames[1:]:
        expect(f.get("edit") is True, "edit true", f)
    for f in m.frames:
        expect(whole.startswith(f["text"]), "the text so far", f)
        expect(f.get("chunk") == {"index": 0, "total": 1}, "chunk {index 0, total 1}", f)
    sizes = [len(f["text"]) for f in m.frames]
    expect(sizes == sorted(sizes), "a text that grows", sizes)
    expect(
        [f["final"] for f in m.frames].count(True) == 1 and m.last["final"],
        "final once, at the end",
        sizes,
    )


@case(FULL)
async def edits_are_at_most_eight_a_second(run: Run):
    """§4: a device gets at most 8 edits a second. A newer edit replaces one that waits."""
    phone = await run.connected()
    start = phone.now()
    await phone.say("/demo stream 300")
    m = await phone.reply(start)
    times = [t for f, t in zip(phone.frames[start:], phone.times[start:]) if f["t"] == "message"]
    took = times[-1] - times[0]
    expect(len(m.frames) - 1 <= 8 * took + 4, f"at most 8 a second in {took:.1f} s", len(m.frames))


@case(CORE)
async def indicators_follow_the_turn(run: Run):
    """§4: thinking and typing come before the text, speaking during it, typing{stop:true} and idle
    after it.
    """
    phone = await run.connected()
    start = phone.now()
    await phone.say("one two three four five six seven eight nine ten")
    idle = await phone.idle(start)
    frames = phone.frames[start:]

    def at(match, what):
        found = [i for i, f in enumerate(frames) if match(f)]
        expect(found, what, phone.recent(start))
        return found

    thinking = at(lambda f: f["t"] == "avatar" and f["state"] == "thinking", "avatar thinking")[0]
    typing = at(lambda f: f["t"] == "typing" and not f.get("stop"), "typing")[0]
    speaking = at(lambda f: f["t"] == "avatar" and f["state"] == "speaking", "avatar speaking")[0]
    messages = at(lambda f: f["t"] == "message", "messages")
    stop = at(lambda f: f["t"] == "typing" and f.get("stop") is True, "typing stop")[0]
    expect(
        thinking < messages[0] and typing < messages[0],
        "thinking and typing before the first text",
        phone.recent(start),
    )
    expect(thinking < speaking < stop, "speaking between thinking and the end", phone.recent(start))
    expect(
        messages[-1] < stop < frames.index(idle),
        "final, then typing stop, then idle",
        phone.recent(start),
    )


@case(FULL)
async def idle_comes_a_second_after_the_end(run: Run):
    """§4: idle follows typing{stop:true} by about a second. speaking comes with the first text."""
    phone = await run.connected()
    start = phone.now()
    await phone.say("a b c d e f g h i j k l m n o p")
    stop = await phone.turn_over(start)
    idle = await phone.idle(start)
    gap = (
        phone.times[phone.frames.index(idle, start)] - phone.times[phone.frames.index(stop, start)]
    )
    expect(0.5 <= gap <= 5, "idle about a second after typing stop", f"{gap:.2f} s")
    kinds = [
        f
        for f in phone.frames[start:]
        if f["t"] == "message" or f["t"] == "avatar" and f["state"] == "speaking"
    ]
    first = [f["t"] for f in kinds[:2]]
    expect("avatar" in first, "speaking beside the first message", first)


@case(FULL)
async def a_stopped_stream_says_interrupted(run: Run):
    """§4: a stream cut by stop ends with a final of the text so far and interrupted:true."""
    phone = await run.connected()
    start = phone.now()
    await phone.say("/demo stream 500")
    first = await phone.wait(
        lambda f: f["t"] == "message" and len(f["text"]) > 40, "the stream to begin", start=start
    )
    await phone.send({"t": "stop"})
    m = await phone.reply(start, timeout=4)
    whole = " ".join(f"w{i}" for i in range(1, 501))
    expect(
        m.id == first["id"] and m.last.get("interrupted") is True,
        "interrupted true on the final of the same message",
        m.last,
    )
    expect(
        whole.startswith(m.text.rstrip()) and len(first["text"]) <= len(m.text) < len(whole),
        "what there was",
        brief(m.text),
    )
    await phone.turn_over(start)
    m = await phone.ask("a whole reply")
    expect(not m.last.get("interrupted"), "no interrupted on a whole reply", m.last)


async def _reassembled(phone: Phone, text: str, expected: str) -> list[dict]:
    start = phone.now()
    await phone.say(text)
    m = await phone.reply(start)
    steps = [f for f in m.frames if "append" in f]
    expect(steps, "append frames", [sorted(f) for f in m.frames[:3]])
    so_far = ""
    for f in m.frames:
        if "append" in f:
            expect(f["append"], "an append that adds something", f)
            expect(
                f.get("edit") is True and f["at"] * 2 == len(so_far.encode("utf-16-le")),
                f"edit true and at = {len(so_far.encode('utf-16-le')) // 2} UTF-16 units",
                f,
            )
            so_far += f["append"]
        else:
            so_far = f["text"]
        expect(expected.startswith(so_far), "the text so far", so_far[-60:])
    expect(m.last["final"] and m.last.get("text") == expected, "the final whole", m.last)
    return steps


@case(FULL)
async def delta_sends_only_what_is_new(run: Run):
    """§4: with accept delta, a step that grows is an append at a position in UTF-16 units. The
    final is whole.
    """
    phone = await run.connected(accept=("delta",))
    await _reassembled(phone, "/demo stream 200", " ".join(f"w{i}" for i in range(1, 201)))
    words = " ".join("👩‍💻 🇩🇪 word е\u0301".split() * 20)
    await _reassembled(phone, words, "You said: " + words)


@case(FULL)
async def a_rewritten_stream_is_sent_whole(run: Run):
    """§4: a step that rewrites the text is sent whole, with and without delta. No mixture is ever
    shown.
    """
    for accept in ((), ("delta",)):
        phone = await run.connected(accept=accept)
        await phone.say("/demo rewrite")
        m = await phone.reply()
        shown = ""
        for f in m.frames:
            if "append" in f:
                expect(
                    f["append"] and f["at"] == len(shown),
                    f"an append at {len(shown)} that adds something",
                    f,
                )
                shown += f["append"]
            else:
                shown = f["text"]
            expect(
                "one two three".startswith(shown) or shown in ("three two one", "three two one."),
                "the old text so far or the new one",
                f,
            )
        expect(
            m.last.get("text") == "three two one." and m.finals == 1,
            "the final `three two one.`, whole",
            m.last,
        )
        expect(len(m.frames) >= 2 and len(phone.chat()) == 1, "edits of one message", m.frames)


@case(FULL)
async def delta_is_for_those_who_ask(run: Run):
    """§2 and §4: without accept delta every frame has its text, whatever other devices accept."""
    a, b = await run.connected(accept=("delta",)), await run.connected()
    start = b.now()
    await a.say("/demo stream 100")
    await b.say("/demo stream 100")
    m = await b.reply(start)
    expect(
        all("text" in f and "append" not in f for f in m.frames), "whole texts only", m.frames[0]
    )
    await a.reply()


@case(FULL)
async def tool_frames_are_for_those_who_ask(run: Run):
    """§6: tool frames (started, progress, done) go only to devices that accept tool. The reply is
    the same.
    """
    a, b = await run.connected(accept=("tool",)), await run.connected()
    expect(
        (await b.ask("/demo tool")).text == "tool: done",
        "`tool: done` without tool frames",
        b.recent(),
    )
    expect(not any(f["t"] == "tool" for f in b.frames), "no tool frames", b.recent())
    expect((await a.ask("/demo tool")).text == "tool: done", "`tool: done`", a.recent())
    tools = [f for f in a.frames if f["t"] == "tool"]
    expect(
        [f["state"] for f in tools] == ["started", "progress", "done"],
        "started, progress, done",
        tools,
    )
    expect(
        {f["name"] for f in tools} == {"terminal"} and len({f["id"] for f in tools}) == 1,
        "one tool, terminal",
        tools,
    )
