"""Files and voice messages in both directions."""

from __future__ import annotations

import base64
import random
import urllib.parse

from cases import CORE, FULL, Run, case
from expect import MIB, PNG, b64, expect, fresh_id, pattern, wav
from phone import Phone, part, split


async def send_all(phone: Phone, ident: str, data: bytes, size: int, order=None, **over) -> None:
    parts = split(data, size)
    for i in order or range(len(parts)):
        await phone.send(part(ident, parts[i], i, len(parts), **over))


@case(CORE)
async def a_photo_in_one_frame(run: Run):
    """§5: a small file goes up in one frame with kind, mime, filename and caption."""
    phone = await run.connected()
    start = phone.now()
    await phone.send(
        {
            "t": "media",
            "id": "m1",
            "kind": "image",
            "mime": "image/png",
            "filename": "photo.png",
            "caption": "Смотри",
            "data": b64(PNG),
            "part": 0,
            "parts": 1,
        }
    )
    await phone.agent_received(PNG, start, "image", "photo.png", "Смотри")


@case(CORE, heavy=True)
async def a_document_in_chunks(run: Run):
    """§5: a large file goes up in parts with one id, and the agent gets it whole."""
    phone = await run.connected()
    data, start = pattern(7 * MIB + 123), phone.now()
    await phone.upload(
        fresh_id(), data, 3 * MIB, kind="document", mime="application/pdf", filename="report.pdf"
    )
    await phone.agent_received(data, start, "document", "report.pdf")


@case(CORE, heavy=True)
async def eight_megabytes_are_allowed(run: Run):
    """§5 and §11: a file of 8 MiB is accepted, in one frame."""
    phone = await run.connected()
    data, start = pattern(8 * MIB), phone.now()
    await phone.send(part(fresh_id(), data))
    await phone.agent_received(data, start)


@case(CORE, heavy=True)
async def more_than_eight_megabytes_is_too_big(run: Run):
    """§5: a file over 8 MiB gets too_big, in one frame or in parts. The chat continues."""
    phone = await run.connected()
    ident = fresh_id()
    await phone.send(part(ident, pattern(8 * MIB + 1)))
    await phone.error("too_big", ident)
    start, ident = phone.now(), fresh_id()
    for i in range(3):
        await phone.send(part(ident, pattern(3 * MIB), i, 3))
    await phone.error("too_big", ident, start)
    await phone.echo("go on")


@case(CORE)
async def an_unfinished_series_is_not_delivered(run: Run):
    """§5: the agent gets a file only when all of its parts have arrived."""
    phone = await run.connected()
    ident, data = fresh_id(), pattern(20_000)
    start = phone.now()
    parts = split(data, 8192)
    for i in (0, 1):
        await phone.send(part(ident, parts[i], i, 3))
    await phone.echo("meanwhile")
    await phone.nothing(
        lambda f: f["t"] == "message" and f["text"].startswith("received"),
        "incomplete file",
        start=start,
    )
    await phone.send(part(ident, parts[2], 2, 3))
    await phone.agent_received(data, start)


@case(CORE)
async def every_kind_is_taken(run: Run):
    """§5: kind is image, video, document or audio."""
    phone = await run.connected()
    mp4 = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + pattern(5000)
    for kind, mime, name, data in (
        ("image", "image/png", "a.png", PNG),
        ("video", "video/mp4", "b.mp4", mp4),
        ("document", "text/plain", "c.txt", b"plain words\n"),
        ("audio", "audio/wav", "d.wav", wav()),
    ):
        start = phone.now()
        await phone.send(part(fresh_id(), data, kind=kind, mime=mime, filename=name))
        await phone.agent_received(data, start, kind, name)


@case(CORE)
async def a_voice_message_with_its_text(run: Run):
    """§3: audio is a WAV, with or without the text that the app recognised."""
    phone = await run.connected()
    data, start = wav(0.5), phone.now()
    await phone.send(
        {"t": "audio", "id": fresh_id(), "format": "wav", "data": b64(data), "text": "что на ужин"}
    )
    await phone.agent_received(data, start, "audio", "voice.wav", "что на ужин")
    start, data = phone.now(), wav(0.3)
    await phone.send({"t": "audio", "id": fresh_id(), "format": "wav", "data": b64(data)})
    m = await phone.agent_received(data, start, "audio", "voice.wav")
    expect(" text:" not in m.text, "no text where none was sent", m.text)


@case(CORE, heavy=True)
async def a_voice_message_has_a_limit(run: Run):
    """§3 and §11: a voice message has at most 8 MiB."""
    phone = await run.connected()
    ident = fresh_id()
    await phone.send(
        {"t": "audio", "id": ident, "format": "wav", "data": b64(wav() + bytes(8 * MIB))}
    )
    await phone.error("too_big", ident)
    await phone.echo("go on")


@case(FULL)
async def other_formats_of_voice(run: Run):
    """§3: audio may also be ogg, m4a, mp3 or webm."""
    phone = await run.connected()
    for form, head in (
        ("ogg", b"OggS\0\2"),
        ("m4a", b"\0\0\0\x18ftypM4A \0\0\0\0M4A mp42"),
        ("mp3", b"ID3\4\0\0\0\0\0\0\xff\xfb\x90\0"),
        ("webm", b"\x1aE\xdf\xa3"),
    ):
        data, start = head + pattern(3000), phone.now()
        await phone.send({"t": "audio", "id": fresh_id(), "format": form, "data": b64(data)})
        await phone.agent_received(data, start, "audio", f"voice.{form}")


@case(FULL)
async def bad_audio_is_refused(run: Run):
    """§3: a WAV needs its RIFF/WAVE header and valid base64. Others get bad_frame."""
    phone = await run.connected()
    for n, fields in enumerate(
        (
            {"data": b64(b"not a wave file at all" * 9)},
            {"data": "@@@"},
            {"data": ""},
            {"data": 7},
            {},
        )
    ):
        start = phone.now()
        await phone.send({"t": "audio", "id": f"a{n}", "format": "wav", **fields})
        await phone.error("bad_frame", f"a{n}", start)
    expect(not phone.chat(), "no turn for refused audio", phone.recent())


@case(FULL)
async def chunks_may_come_in_any_order(run: Run):
    """§5: parts may arrive in any order. A repeated identical part is ignored, and the file gets
    one accepted.
    """
    phone = await run.connected()
    data, ident, start = pattern(100_000), fresh_id(), phone.now()
    order = list(range(25))
    random.Random(7).shuffle(order)
    order[3:3] = [order[0], order[1]]
    await phone.upload(ident, data, 4096, order, filename="shuffled.bin")
    await phone.agent_received(data, start, "document", "shuffled.bin")
    f = await phone.ack_of(ident)
    expect(f["t"] == "accepted", "accepted for the whole file", f)
    expect(sum(x["t"] == "accepted" for x in phone.frames) == 1, "one receipt", phone.recent())


@case(FULL)
async def series_of_one_device_do_not_mix(run: Run):
    """§5: parts of several files may alternate. Ids tell them apart."""
    phone = await run.connected()
    files = {fresh_id(): pattern(20_000 + i * 1000)[i:] for i in range(8)}
    parts = {k: split(v, 8192) for k, v in files.items()}
    for i in range(4):
        for ident, p in parts.items():
            if i < len(p):
                await phone.send(part(ident, p[i], i, len(p), filename=ident + ".bin"))
    for ident, data in files.items():
        await phone.reply(
            match=lambda t: f" {ident}.bin {len(data)} " in t,
            what=f"`received … {ident}.bin {len(data)}`",
        )


@case(FULL)
async def contradictions_drop_the_series(run: Run):
    """§5: a part that contradicts an earlier one gets bad_frame and drops only its own file."""
    phone = await run.connected()
    data = split(pattern(16384), 4096)
    good = fresh_id("good")
    await phone.send(part(good, data[0], 0, 4, filename="good.bin"))
    for over in (
        {"parts": 5},
        {"kind": "image"},
        {"filename": "other.bin"},
        {"mime": "text/plain"},
    ):
        ident, start = fresh_id("bad"), phone.now()
        await phone.send(part(ident, data[0], 0, 4))
        await phone.send({**part(ident, data[1], 1, 4), **over})
        await phone.error("bad_frame", ident, start)
    ident, start = fresh_id("bad"), phone.now()
    await phone.send(part(ident, data[0], 0, 4))
    await phone.send(part(ident, data[0][::-1], 0, 4))
    await phone.error("bad_frame", ident, start)
    first = phone.now()
    for i in (1, 2, 3):
        start = phone.now()
        await phone.send(part(ident, data[i], i, 4))
        await phone.error("bad_frame", ident, start)
    await phone.nothing(
        lambda f: f["t"] in ("message", "accepted"), "file from a dropped upload", start=first
    )
    for i in (3, 2, 1):
        await phone.send(part(good, data[i], i, 4, filename="good.bin"))
    await phone.agent_received(b"".join(data), start, "document", "good.bin")


@case(FULL)
async def a_dropped_series_begins_again_with_part_0(run: Run):
    """§5: after a drop, later parts are rejected with the same code until part 0 starts the file
    again.
    """
    phone = await run.connected()
    data = split(pattern(4 * 4096), 4096)
    ident, start = fresh_id(), phone.now()
    await phone.send(part(ident, data[0], 0, 4))
    await phone.send(part(ident, data[1], 1, 4, kind="image"))
    await phone.error("bad_frame", ident, start)
    for i in (1, 3, 2):
        start = phone.now()
        await phone.send(part(ident, data[i], i, 4))
        await phone.error("bad_frame", ident, start)
    start = phone.now()
    for i in (0, 3, 1, 2):
        await phone.send(part(ident, data[i], i, 4))
    await phone.agent_received(b"".join(data), start)
    expect(
        not any(f["t"] == "error" for f in phone.frames[start:]),
        "no error any more",
        phone.recent(start),
    )
    large, ident = split(pattern(9 * MIB), 3 * MIB), fresh_id()
    start = phone.now()
    for i in (0, 1, 2):
        await phone.send(part(ident, large[i], i, 4))
    await phone.error("too_big", ident, start)
    start = phone.now()
    await phone.send(part(ident, pattern(5000), 3, 4))
    await phone.error("too_big", ident, start)
    start = phone.now()
    await phone.send(part(ident, pattern(100), filename="smaller.bin"))
    await phone.agent_received(pattern(100), start, "document", "smaller.bin")


@case(FULL)
async def later_parts_may_leave_the_metadata_out(run: Run):
    """§5: the metadata of the first part to arrive holds. Later parts may omit it."""
    phone = await run.connected()
    data, ident, start = split(pattern(3 * 4096), 4096), fresh_id(), phone.now()
    await phone.send(part(ident, data[1], 1, 3, filename="lean.bin", caption="all of it"))
    for i in (0, 2):
        await phone.send({"t": "media", "id": ident, "data": b64(data[i]), "part": i, "parts": 3})
    await phone.agent_received(b"".join(data), start, "document", "lean.bin", "all of it")


@case(FULL)
async def odd_part_numbers_are_refused(run: Run):
    """§5 and §11: part is 0 to parts-1 and parts 1 to 2048, both integers. Others get bad_frame."""
    phone = await run.connected()
    data = pattern(4096)
    for index, count in (
        (1, 1),
        (-1, 2),
        (4, 4),
        (0, 0),
        (0, -1),
        (0, 2049),
        ("0", "2"),
        (0.5, 2),
        (None, None),
    ):
        ident, start = fresh_id(), phone.now()
        f = part(ident, data)
        f.update(part=index, parts=count)
        await phone.send(f)
        # Null numbers in a single frame may be accepted or rejected.
        if (index, count) == (None, None):
            await phone.wait(
                lambda x: x["t"] == "error" or x["t"] == "message" and x["final"],
                "an answer",
                start=start,
            )
            continue
        await phone.error("bad_frame", ident, start)
    await phone.echo("go on")


@case(CORE)
async def small_chunks_are_refused(run: Run):
    """§5 and §11: a part has at least 4 KiB, except for the last."""
    phone = await run.connected()
    ident = fresh_id()
    await phone.send(part(ident, pattern(4095), 0, 3))
    await phone.error("bad_frame", ident)
    data, start = pattern(4096 + 1), phone.now()
    await phone.upload(fresh_id(), data, 4096)
    await phone.agent_received(data, start)


@case(CORE)
async def eight_uploads_at_a_time(run: Run):
    """§5 and §11: a ninth unfinished file gets bad_frame. The eight continue, and finishing one
    makes space.
    """
    phone = await run.connected()
    files = {fresh_id(): pattern(8192 + i) for i in range(9)}
    ids = list(files)
    for ident in ids[:8]:
        await phone.send(part(ident, files[ident][:4096], 0, 3))
    start = phone.now()
    await phone.send(part(ids[8], files[ids[8]][:4096], 0, 3))
    await phone.error("bad_frame", ids[8], start)
    start = phone.now()
    await phone.send(part(fresh_id(), pattern(777), filename="single.bin"))
    await phone.agent_received(pattern(777), start, "document", "single.bin")
    start = phone.now()
    for i in (1, 2):
        await phone.send(part(ids[0], split(files[ids[0]] + b"tail", 4096)[i], i, 3))
    await phone.agent_received(files[ids[0]] + b"tail", start)
    start = phone.now()
    for i, p in enumerate(split(files[ids[8]] + b"tail", 4096)):
        await phone.send(part(ids[8], p, i, 3))
    await phone.agent_received(files[ids[8]] + b"tail", start)


@case(CORE, heavy=True)
async def uploads_share_one_buffer_freed_on_disconnect(run: Run):
    """§5 and §11: unfinished files of a device share 8 MiB, which a disconnect frees."""
    phone = await run.connected()
    for round_ in range(2):
        for i in range(3):
            await phone.send(part(f"u{round_}{i}", pattern(2 * MIB), 0, 2))
        start = phone.now()
        await phone.send(part(f"u{round_}9", pattern(3 * MIB), 0, 2))
        await phone.error("too_big", f"u{round_}9", start)
        await phone.connect()
    data, start = pattern(8 * MIB), phone.now()
    await phone.upload(fresh_id(), data, 3 * MIB)
    await phone.agent_received(data, start)


@case(FULL, heavy=True)
async def a_single_frame_does_not_count_as_unfinished(run: Run):
    """§5: a file in one frame does not use the budget of unfinished files."""
    phone = await run.connected()
    big, ident = pattern(7 * MIB), fresh_id()
    parts = split(big, 3 * MIB)
    for i in (0, 1):
        await phone.send(part(ident, parts[i], i, 3, filename="series.bin"))
    start, data = phone.now(), pattern(8 * MIB)
    await phone.send(part(fresh_id(), data, filename="single.bin"))
    await phone.agent_received(data, start, "document", "single.bin")
    start = phone.now()
    await phone.send(part(ident, parts[2], 2, 3, filename="series.bin"))
    await phone.agent_received(big, start, "document", "series.bin")
    expect(not any(f["t"] == "error" for f in phone.frames), "no error", phone.recent())


@case(FULL)
async def bad_base64_is_refused(run: Run):
    """§5: data that is not base64 gets bad_frame with ref."""
    phone = await run.connected()
    for n, data in enumerate(("not base64!", "AAAAA", "QUJD\u00e9", 7, None, ["QUJD"])):
        start = phone.now()
        await phone.send(
            {
                "t": "media",
                "id": f"b{n}",
                "kind": "document",
                "mime": "text/plain",
                "filename": "x.txt",
                "data": data,
                "part": 0,
                "parts": 1,
            }
        )
        await phone.error("bad_frame", f"b{n}", start)
    expect(not phone.chat(), "no turn for refused media", phone.recent())


@case(FULL)
async def three_spellings_of_base64(run: Run):
    """§5: base64 may be standard or URL-safe, padded or not."""
    phone = await run.connected()
    data = bytes(range(256)) * 3 + b"\xfb\xff\xfe\x00"
    for text in (
        b64(data),
        b64(data).rstrip("="),
        base64.urlsafe_b64encode(data).decode(),
        base64.urlsafe_b64encode(data).decode().rstrip("="),
    ):
        start = phone.now()
        await phone.send({**part(fresh_id(), b""), "data": text})
        await phone.agent_received(data, start)


@case(FULL)
async def file_names_are_made_harmless(run: Run):
    """§5: a file name loses folders, control characters and a leading dot, and has at most 255
    bytes.
    """
    phone = await run.connected()
    for name, want in (
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\a\\photo.jpg", "photo.jpg"),
        (".bashrc", "bashrc"),
        ("a\nb\u0000c.txt", "abc.txt"),
        ("отчёт.pdf", "отчёт.pdf"),
    ):
        start = phone.now()
        await phone.send(part(fresh_id(), b"some bytes", filename=name))
        m = await phone.agent_received(b"some bytes", start)
        expect(m.text.startswith(f"received document {want} 10 "), f"{want!r} for {name!r}", m.text)
    for name in ("x" * 300 + ".txt", "ü" * 200):
        start = phone.now()
        await phone.send(part(fresh_id(), b"some bytes", filename=name))
        m = await phone.agent_received(b"some bytes", start, "document")
        got = m.text.removeprefix("received document ").rsplit(" 10 sha256:", 1)[0]
        expect(
            0 < len(got.encode()) <= 255 and got[0] in "xü" and "\ufffd" not in got,
            "a name of at most 255 bytes",
            got,
        )
    for name in ("..", "/", "", None):
        start = phone.now()
        f = part(fresh_id(), b"some bytes", filename=name)
        await phone.send(f)
        await phone.wait(
            lambda x: x["t"] == "error" or x["t"] == "message" and x["final"],
            f"an answer to the name {name!r}",
            start=start,
        )
        await phone.ping()


@case(FULL)
async def the_same_file_is_taken_once(run: Run):
    """§3 and §5: a file sent again under its id gets duplicate:true at its first part, also after a
    reconnect.
    """
    phone = await run.connected()
    ident, data = fresh_id(), pattern(9000)
    start = phone.now()
    await phone.upload(ident, data, 4096)
    await phone.agent_received(data, start)
    await phone.connect()
    start, parts = phone.now(), split(data, 4096)
    await phone.send(part(ident, parts[0], 0, len(parts)))
    f = await phone.ack_of(ident, start)
    expect(
        f["t"] == "accepted" and f["duplicate"] is True, "accepted, duplicate, at the first part", f
    )
    for i in range(1, len(parts)):
        await phone.send(part(ident, parts[i], i, len(parts)))
    await phone.nothing(lambda f: f["t"] == "message", "second copy", start=start)


@case(CORE)
async def the_agent_sends_every_kind(run: Run):
    """§5: pictures, voice, video, documents and animations arrive as media frames with caption and
    true size.
    """
    phone = await run.connected()
    for word, kind, magic in (
        ("image", "image", b"\x89PNG"),
        ("voice", "voice", b"RIFF"),
        ("video", "video", None),
        ("file", "document", b"%PDF"),
        ("animation", "animation", b"GIF8"),
    ):
        start = phone.now()
        await phone.say(f"/demo {word}")
        f, data = await phone.next_file(start)
        expect(f["kind"] == kind, f"kind {kind}", {k: v for k, v in f.items() if k != "data"})
        expect(
            f.get("filename") and f.get("mime") and f.get("size") == len(data),
            "filename, mime and the true size",
            {k: v for k, v in f.items() if k != "data"},
        )
        expect(f.get("caption") == f"{word} for you", f"caption `{word} for you`", f.get("caption"))
        expect(
            data.startswith(magic) if magic else data[4:8] == b"ftyp",
            f"a real {word}",
            data[:12].hex(),
        )
        await phone.turn_over(start)


@case(CORE, heavy=True)
async def a_large_file_arrives_in_order(run: Run):
    """§5: a large file comes down in parts of 3 MiB, in order, under one seq, final on the last."""
    phone = await run.connected()
    start = phone.now()
    await phone.say("/demo file 7000000")
    f, data = await phone.next_file(start)
    expect(data == pattern(7_000_000), "the exact bytes", f"{len(data)} bytes")
    frames = [x for x in phone.frames[start:] if x["t"] == "media"]
    expect(
        [x["part"] for x in frames] == list(range(frames[0]["parts"])),
        "parts in order",
        [x["part"] for x in frames],
    )
    expect(
        len(frames) == 3 and [x["final"] for x in frames] == [False, False, True],
        "three parts, final on the last",
        len(frames),
    )
    expect(
        f["filename"] == "demo-7000000.bin" and f["size"] == 7_000_000,
        "name and size",
        f["filename"],
    )
    expect(f.get("caption") == "file for you", "caption `file for you`", f.get("caption"))
    expect(
        len({x.get("seq") for x in frames}) == 1 and isinstance(f.get("seq"), int),
        "one seq",
        [x.get("seq") for x in frames],
    )


@case(FULL, heavy=True)
async def a_file_over_the_limit_comes_as_a_link(run: Run):
    """§5: a file over 8 MiB comes as a signed link on the host of the request, with range requests."""
    phone = await run.connected()
    start = phone.now()
    await phone.say("/demo file 9000000")
    f = await phone.wait("media", "a media frame", start=start, timeout=60)
    expect(
        f.get("url") and not f.get("data") and f["final"] is True,
        "url, no data, final",
        {k: str(v)[:80] for k, v in f.items()},
    )
    expect(f.get("size") == 9_000_000, "the size", f.get("size"))
    expect(
        urllib.parse.urlsplit(f["url"]).netloc == f"127.0.0.1:{run.server.port}",
        "the Host of the request in the link",
        f["url"],
    )
    status, _, body = await run.server.http(f["url"])
    expect(
        status == 200 and body == pattern(9_000_000),
        "the file behind the link",
        (status, len(body)),
    )
    status, headers, body = await run.server.http(f["url"], {"Range": "bytes=8999990-"})
    expect(
        status == 206 and body == pattern(9_000_000)[-10:],
        "206 with the last ten bytes",
        (status, len(body)),
    )
    cut = f["url"][:-4] + ("AAAA" if not f["url"].endswith("AAAA") else "BBBB")
    status, _, _ = await run.server.http(cut)
    expect(400 <= status < 500, "a changed link refused", status)
    expect(run.server.token not in f["url"], "no token in the link", f["url"])


@case(FULL, {"MOBILE_PUBLIC_URL": "https://agent.example"}, heavy=True)
async def links_carry_the_public_address(run: Run):
    """§5 and §8: links and QR codes carry MOBILE_PUBLIC_URL."""
    phone = await run.connected()
    await phone.say("/demo file 9000000")
    f = await phone.wait("media", "a media frame", timeout=60)
    expect(
        str(f.get("url")).startswith("https://agent.example/"),
        "a link on https://agent.example",
        f.get("url"),
    )
    status, _, body = await run.server.http(f["url"])
    expect(
        status == 200 and body == pattern(9_000_000),
        "the file behind the link",
        (status, len(body)),
    )
    status, said = await run.server.cli("pair", timeout=8)
    expect("agent.example" in said, "the address in what `pair` prints", said)
