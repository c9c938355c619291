"""Pairing and approval: codes, Hermes' own files, revoking, and limits on guesses."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time

from case_delivery import deliver
from cases import CORE, FULL, NOT_APPROVED, Run, case
from expect import CODE, Fail, brief, expect, fresh_id, pattern
from phone import Phone, part


async def pairing_codes(phone: Phone, text="hello, may I come in?") -> list[str]:
    """Sends a first message and returns what looks like an approval code in the answer."""
    m = await phone.ask(text)
    expect("You said" not in m.text, "no answer of the agent before the approval", m.text)
    found = [w.replace("-", "") for w in CODE.findall(m.text)]
    return sorted(found, key=str.isalpha)  # a word in capitals is hardly a code


async def approve(run: Run, *candidates: str, platform=False) -> None:
    """Runs `pairing approve` with the first candidate that works.

    Hermes names the platform before the argument. The server must accept both spellings.
    """
    said = ""
    for x in candidates:
        status, said = await run.server.cli(
            "pairing", "approve", *(("mobile", x) if platform else (x,))
        )
        if status == 0:
            return
    raise Fail(f"expected pairing approve to succeed; came {brief(said)}")


async def told_of_the_approval(phone: Phone, start: int) -> None:
    """Waits for the approved frame. Two seconds are promised; a busy machine gets a few more."""
    await phone.wait("approved", "an approved frame", start=start, timeout=5)


async def pending(run: Run) -> dict:
    status, said = await run.server.cli("pairing", "list", "--json")
    expect(status == 0, "pairing list --json to succeed", said)
    listing = json.loads(said)
    expect(
        isinstance(listing, dict)
        and isinstance(listing.get("pending"), list)
        and isinstance(listing.get("approved"), list),
        "{pending:[…], approved:[…]}",
        said,
    )
    return listing


async def let_in(phone: Phone) -> None:
    """The next message of an approved device reaches the agent, on its present connection."""
    await phone.echo("thank you")


@case(CORE, NOT_APPROVED)
async def a_new_device_gets_a_pairing_code(run: Run):
    """§8: a new device gets ready, and an approval code on its first message. Approved, it reaches
    the agent.
    """
    phone = await run.connected()
    codes = await pairing_codes(phone)
    expect(codes, "a code of 8 letters and digits in the answer", phone.recent())
    await approve(run, *codes)
    await let_in(phone)
    await run.server.crash_and_start()
    await phone.connect()
    await let_in(phone)


@case(FULL, NOT_APPROVED)
async def an_unapproved_device_is_told_so(run: Run):
    """§2 and §8: before the approval ready says approved:false and messages are neither accepted
    nor kept. The live connection hears approved.
    """
    phone = await run.connected()
    expect(phone.ready.get("approved") is False, "approved false", phone.ready)
    codes = await pairing_codes(phone)
    start, ident = phone.now(), fresh_id()
    await phone.say("and a second message", ident)
    m = await phone.reply(start, what="an answer that says to wait")
    expect(
        not [
            w for w in CODE.findall(m.text) if w.replace("-", "") not in codes and not w.isalpha()
        ],
        "no second code",
        m.text,
    )
    await phone.say("/demo image")
    await phone.nothing(
        lambda f: f["t"] == "media" or f["t"] == "message" and "You said" in f["text"],
        "answer before the approval",
        start=start,
    )
    expect(
        not any(f["t"] == "accepted" for f in phone.frames),
        "no ack before the approval",
        phone.recent(),
    )
    start = phone.now()
    await approve(run, *codes)
    await told_of_the_approval(phone, start)
    await phone.nothing(
        lambda f: f["t"] in ("media", "message"),
        "answer to what was sent before the approval",
        start=start,
    )
    start = phone.now()
    await phone.say("and a second message", ident)
    f = await phone.ack_of(ident, start)
    expect(f["t"] == "accepted" and f["duplicate"] is False, "accepted when it is sent again", f)
    expect(
        (await phone.reply(start)).text == "You said: and a second message",
        "its answer",
        phone.recent(start),
    )
    await phone.connect()
    expect(phone.ready.get("approved") is True, "approved true", phone.ready)
    expect(sum(f["t"] == "approved" for f in phone.frames) == 1, "told once", phone.recent())


@case(FULL, NOT_APPROVED)
async def pairing_by_request_id(run: Run):
    """§8: `pairing list --json` shows a request without its code. Its request id approves it."""
    phone = await run.connected()
    codes = await pairing_codes(phone)
    listing = await pending(run)
    found = listing["pending"]
    expect(
        [e.get("user_id") for e in found] == [phone.id] and not listing["approved"],
        f"one entry, of {phone.id}, and nobody approved",
        listing,
    )
    expect(
        found[0].get("platform") == "mobile" and isinstance(found[0].get("request_id"), str),
        "platform mobile and a request_id",
        found[0],
    )
    expect(
        isinstance(found[0].get("user_name"), str)
        and isinstance(found[0].get("age_minutes"), (int, float)),
        "user_name and age_minutes",
        found[0],
    )
    expect(
        not any(code in json.dumps(listing) for code in codes if not code.isalpha()),
        "no code in the list",
        listing,
    )
    start = phone.now()
    await approve(run, found[0]["request_id"], platform=True)
    await told_of_the_approval(phone, start)
    await let_in(phone)
    listing = await pending(run)
    expect(
        not listing["pending"] and phone.id in json.dumps(listing["approved"]),
        f"nobody pending, {phone.id} approved",
        listing,
    )


@case(CORE, NOT_APPROVED)
async def hermes_own_pairing_files_are_used(run: Run):
    """§8: requests and approvals are in Hermes' own pairing files, in its format, and changes by
    Hermes take effect.
    """
    phone = await run.connected()
    codes = await pairing_codes(phone)
    folder = run.server.home / "platforms" / "pairing"
    pending = folder / "mobile-pending.json"
    expect(
        pending.exists(),
        "HERMES_HOME/platforms/pairing/mobile-pending.json",
        sorted(p.name for p in run.server.home.rglob("*")),
    )
    expect(stat.S_IMODE(pending.stat().st_mode) == 0o600, "mode 0600", oct(pending.stat().st_mode))
    entries = json.loads(pending.read_text("utf-8"))
    mine = {k: v for k, v in entries.items() if v.get("user_id") == phone.id}
    expect(len(mine) == 1, "one pending entry of this user", entries)
    ident, entry = next(iter(mine.items()))
    expect(
        len(ident) == 16 and set(ident) <= set("0123456789abcdef"),
        "a request id of 16 hex digits",
        ident,
    )
    hashes = [
        hashlib.sha256(bytes.fromhex(entry["salt"]) + code.encode()).hexdigest() for code in codes
    ]
    expect(entry["hash"] in hashes, "the salted SHA-256 of the code shown", entry)
    expect(abs(entry["created_at"] - time.time()) < 120, "created_at in seconds since 1970", entry)

    # Do what `hermes pairing approve mobile <id>` does.
    del entries[ident]
    write(folder / "mobile-pending.json", entries)
    write(
        folder / "mobile-approved.json", {phone.id: {"user_name": "", "approved_at": time.time()}}
    )
    await told_of_the_approval(phone, 0)
    await let_in(phone)

    # Do what `hermes pairing revoke mobile <user>` does.
    write(folder / "mobile-approved.json", {})
    await phone.closed_with(1008, timeout=5)


@case(FULL, NOT_APPROVED)
async def an_approval_can_be_revoked(run: Run):
    """§8: `pairing revoke` closes the user's connections with 1008 at once. Others notice nothing."""
    phone, other = await run.connected(), await run.connected()
    for x in (phone, other):
        await approve(run, *await pairing_codes(x), platform=x is phone)
        await let_in(x)
    for x, words in ((phone, (phone.id,)), (other, ("mobile", other.id))):
        status, said = await run.server.cli("pairing", "revoke", *words)
        expect(status == 0, f"pairing revoke {' '.join(words)} to succeed", said)
        await x.closed_with(1008, timeout=5)
        if x is phone:
            await let_in(other)
    await phone.connect()
    expect(phone.ready.get("approved") is False, "approved false", phone.ready)
    start = phone.now()
    await phone.say("am I still in?")
    m = await phone.reply(start)
    expect("You said" not in m.text, "no answer of the agent", m.text)


@case(FULL, NOT_APPROVED)
async def revoking_drops_what_was_kept(run: Run):
    """§8 and §4: revoking deletes outbox and uploads. Approved again, the user starts a new epoch."""
    phone = await run.connected()
    await approve(run, *await pairing_codes(phone))
    await let_in(phone)
    await phone.ask("of the former owner")
    old = {"epoch": phone.ready["resume"]["epoch"], "seq": 0}
    parts = [pattern(4096), pattern(4096)[::-1]]
    await phone.send(part("half", parts[0], 0, 2))
    await phone.ping()
    status, said = await run.server.cli("pairing", "revoke", phone.id)
    expect(status == 0, "pairing revoke to succeed", said)
    await phone.closed_with(1008, timeout=5)
    folder = run.server.home / "platforms" / "pairing"
    write(
        folder / "mobile-approved.json", {phone.id: {"user_name": "", "approved_at": time.time()}}
    )
    await phone.connect(old)
    expect(phone.ready.get("approved") is True, "approved again", phone.ready)
    expect(phone.ready["resume"].get("lost") is True, "lost true", phone.ready["resume"])
    await phone.nothing(
        lambda f: f["t"] in ("message", "media"),
        "frame of before the revocation",
        start=phone.since_connect,
    )
    start = phone.now()
    await phone.send(part("half", parts[1], 1, 2))
    await phone.nothing("message", "file of which half was dropped", start=start)
    await let_in(phone)


@case(FULL, NOT_APPROVED)
async def a_device_can_be_revoked(run: Run):
    """§8: `devices revoke ID` closes its connection with 1008 and drops its token. Deliveries to it
    fail.
    """
    phone, other = await paired(run), await paired(run)
    await let_in(phone)
    status, said = await run.server.cli("devices", "revoke", phone.id)
    expect(status == 0, "devices revoke to succeed", said)
    await phone.closed_with(1008, timeout=5)
    await phone.rejected()
    f = await deliver(other, phone.id, "to a revoked device")
    expect(
        f["t"] == "error" and f["code"] == "device_offline",
        "device_offline for a delivery to it",
        f,
    )
    await run.server.crash_and_start()
    await phone.rejected()
    await other.connect()
    await let_in(other)


async def paired(run: Run) -> Phone:
    """A device that redeemed a pairing code and has the token it got."""
    status, said = await run.server.cli("pair", timeout=8)
    codes = sorted(CODE.findall(said), key=lambda w: "-" not in w)
    for code in codes[:3]:
        phone = run.phone(hello={"token": None, "pair": code})
        await phone.open()
        await phone.send(phone.hello())
        f = await phone.wait(
            lambda f: f["t"] in ("ready", "error"), "an answer to the pairing code"
        )
        if f["t"] == "ready":
            phone.ready, phone.token, phone.hello_extra = f, f["token"], {}
            return phone
    raise Fail(f"expected a code of `pair` to be redeemed; came {brief(said)}")


def write(path, content) -> None:
    """Replaces a file as Hermes does: whole, with mode 0600."""
    draft = path.with_name(path.name + ".tmp")
    draft.write_text(json.dumps(content))
    os.chmod(draft, 0o600)
    os.replace(draft, path)


@case(FULL, NOT_APPROVED)
async def three_requests_may_wait(run: Run):
    """§8: 3 requests may be pending, and a user may make one in 10 minutes. Others get no code."""
    first = await run.connected()
    codes = await pairing_codes(first)
    expect(codes, "a code", first.recent())
    start = first.now()
    await first.say("again, please")
    await first.wait(
        lambda f: f["t"] in ("message", "error"), "an answer that says to wait", start=start
    )
    again = [
        w.replace("-", "")
        for f in first.frames[start:]
        if f["t"] == "message"
        for w in CODE.findall(f["text"])
    ]
    expect(
        not [w for w in again if w not in codes and not w.isalpha()],
        "no second code within ten minutes",
        again,
    )
    for _ in range(2):
        expect(
            await pairing_codes(await run.connected()),
            "a code for the second and third user",
            "none",
        )
    fourth = await run.connected()
    start = fourth.now()
    await fourth.say("me too")
    f = await fourth.wait(
        lambda f: f["t"] in ("message", "error"), "an answer that says why not", start=start
    )
    words = [w for w in CODE.findall(f.get("text", "") + f.get("message", "")) if not w.isalpha()]
    expect(not words, "no fourth code", f)


@case(FULL, NOT_APPROVED)
async def wrong_approvals_lock(run: Run):
    """§8: 5 wrong codes lock approval by code. Approval by request id still works."""
    phone = await run.connected()
    codes = await pairing_codes(phone)
    for words in [(f"ZZZZZZZ{i + 2}",) for i in range(5)] + [
        ("mobile", f"YYYYYYY{i + 2}") for i in range(5)
    ]:
        status, said = await run.server.cli("pairing", "approve", *words)
        expect(status != 0, "a wrong code to fail", said)
    for words in [(code,) for code in codes] + [("mobile", code) for code in codes]:
        status, said = await run.server.cli("pairing", "approve", *words)
        expect(status != 0, "the right code to be refused while locked", said)
    start = phone.now()
    await phone.say("am I in?")
    expect(
        "You said" not in (await phone.reply(start)).text,
        "no answer of the agent while locked",
        phone.recent(start),
    )
    await approve(run, (await pending(run))["pending"][0]["request_id"])
    await told_of_the_approval(phone, start)
    await let_in(phone)


@case(FULL, NOT_APPROVED)
async def pairing_by_link(run: Run):
    """§2 and §8: a pairing code from `pair` works once, and gives the device a token of its own
    that is stored only as a hash.
    """
    status, said = await run.server.cli("pair", timeout=8)
    codes = CODE.findall(said)
    codes.sort(key=lambda w: "-" not in w)
    expect(codes, "a code in what `pair` prints", said)
    for code in codes[:3]:
        phone = run.phone(hello={"token": None, "pair": code})
        await phone.open()
        await phone.send(phone.hello())
        f = await phone.wait(
            lambda f: f["t"] in ("ready", "error"), "an answer to the pairing code"
        )
        if f["t"] == "ready":
            break
    expect(f["t"] == "ready" and f.get("approved") is True, "ready, approved", f)
    expect(
        isinstance(f.get("token"), str)
        and len(f["token"]) >= 32
        and f["token"] != run.server.token,
        "a token of its own",
        f,
    )
    await let_in(phone)
    await run.phone(hello={"token": None, "pair": code}).rejected()
    own = run.phone(phone.id, token=f["token"])
    await own.connect()
    expect("token" not in own.ready, "no token in a later ready", own.ready)
    await let_in(own)
    await run.phone(phone.id).rejected(codes=("forbidden",))
    await run.phone(fresh_id("dev"), token=f["token"]).rejected(codes=("forbidden", "auth_failed"))
    await run.server.crash_and_start()
    await own.connect()
    await let_in(own)
    expect(
        f["token"] not in all_files(run), "the token stored as a hash only", "it stands in a file"
    )


def all_files(run: Run) -> str:
    return "".join(
        p.read_bytes().decode("latin-1") for p in run.server.root.rglob("*") if p.is_file()
    )
