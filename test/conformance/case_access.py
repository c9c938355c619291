"""Access: tokens, bindings, allowlists, origins, throttling, and a log without secrets."""

from __future__ import annotations


import websockets

from case_pairing import pairing_codes
from cases import CORE, FULL, NOT_APPROVED, Run, case
from expect import Fail, expect, fresh_token

TABLET, WATCH = fresh_token(), fresh_token()
EXTRA = {"MOBILE_EXTRA_TOKENS": f"tablet={TABLET},{WATCH}"}


@case(CORE, EXTRA)
async def extra_tokens_are_tokens(run: Run):
    """§2: MOBILE_EXTRA_TOKENS is a list of tokens, each with an optional label that is no part of
    it.
    """
    for token in (run.server.token, TABLET, WATCH):
        phone = await run.connected(token=token)
        await phone.echo("hello")
    await run.phone(token="tablet=" + TABLET).rejected()
    await run.phone(token=f"tablet={TABLET},{WATCH}").rejected()


@case(CORE, EXTRA)
async def a_device_belongs_to_its_token(run: Run):
    """§2: a device id with another token than its first gets forbidden, also after a restart."""
    phone = await run.connected()
    await run.phone(phone.id, token=TABLET).rejected(codes=("forbidden",))
    await phone.echo("still mine")
    t = await run.connected(token=TABLET)
    await run.phone(t.id).rejected(codes=("forbidden",))
    await run.server.crash_and_start()
    await run.phone(phone.id, token=WATCH).rejected(codes=("forbidden",))
    await phone.connect()


@case(FULL, EXTRA)
async def a_binding_can_be_cleared(run: Run):
    """§2: `devices unbind ID` releases a device id. The next hello binds it again."""
    phone = await run.connected()
    await phone.close()
    status, said = await run.server.cli("devices", "unbind", phone.id)
    expect(status == 0, "devices unbind to succeed", said)
    moved = await run.connected(phone.id, token=TABLET)
    await moved.close()
    await run.phone(phone.id).rejected(codes=("forbidden",))


@case(CORE, {"MOBILE_ALLOWED_DEVICES": "tel-1, tel-2", "MOBILE_ALLOW_ALL_USERS": "1"})
async def allowed_devices_filter(run: Run):
    """§2: a device missing from MOBILE_ALLOWED_DEVICES gets auth_failed and 1008."""
    for ident in ("tel-1", "tel-2"):
        phone = await run.connected(ident)
        await phone.echo("hello")
    for ident in ("tel-3", "tel-", "TEL-1", "tel-1,tel-2"[:5] + "x"):
        await run.phone(ident).rejected()


@case(CORE, {**NOT_APPROVED, "MOBILE_ALLOWED_USERS": "anna,tel-7"})
async def allowed_users_filter(run: Run):
    """§2: a user missing from MOBILE_ALLOWED_USERS gets auth_failed and 1008. Without user.id the
    device id is the user.
    """
    phone = await run.connected("tel-7")
    await phone.echo("hello")
    for ident in ("tel-8", "tel-9"):
        phone = await run.connected(ident, user="anna")
        await phone.echo("hello")
    await run.phone("tel-10").rejected()
    await run.phone("tel-11", user="bob").rejected()


async def guess(run: Run, n: int, headers=None, pair=False) -> None:
    """Tries `n` wrong tokens or wrong pairing codes from one address."""
    for i in range(n):
        try:
            await run.phone(
                token=fresh_token(),
                headers=headers,
                hello={"token": None, "pair": f"ZZZZ-ZZZ{i + 2}"} if pair else {},
            ).rejected()
        except websockets.InvalidStatus as e:
            raise Fail(
                f"expected to be let in for try {i + 1}; came HTTP {e.response.status_code}"
            ) from None


async def answers(run: Run, status: int, forwarded: str | None = None) -> None:
    """Expects this HTTP status for an upgrade, from here or behind a proxy that names an address."""
    _, came, _ = await run.raw(headers={"X-Forwarded-For": forwarded} if forwarded else {})
    expect(came == status, f"HTTP {status} for {forwarded or 'the address itself'}", came)


@case(FULL, {"MOBILE_TRUSTED_PROXIES": "none"})
async def guessing_is_throttled(run: Run):
    """§1: after 10 wrong tokens in a minute an address gets HTTP 429. Forged forwarding headers
    don't help.
    """
    phone = await run.connected()
    await guess(run, 5)
    await guess(run, 5, {"X-Forwarded-For": "203.0.113.5"})
    await answers(run, 429)
    await answers(run, 429, "203.0.113.77")
    await phone.echo("undisturbed")


@case(FULL, own=True)
async def guessing_is_throttled_by_the_clients_address(run: Run):
    """§1: behind a trusted proxy the client's address counts: the last in X-Forwarded-For that is
    no trusted proxy.
    """
    phone = await run.connected()
    await guess(run, 10, {"X-Forwarded-For": "203.0.113.5"})
    for chain in (
        "203.0.113.5",
        "198.51.100.1, 203.0.113.5",
        "203.0.113.5, 127.0.0.1",
        "127.0.0.1,203.0.113.5,127.0.0.9",
    ):
        await answers(run, 429, chain)
    for chain in ("203.0.113.6", "203.0.113.5, 198.51.100.1", None):
        await answers(run, 101, chain)
    await guess(run, 10)
    await answers(run, 429)
    await answers(run, 429, "127.0.0.1")
    await answers(run, 101, "203.0.113.6")
    await phone.echo("undisturbed")


@case(FULL, {"MOBILE_ALLOWED_DEVICES": "tel-1"})
async def wrong_pairing_codes_count_as_guesses(run: Run):
    """§1: wrong tokens and wrong pairing codes count together. A device that is not allowed is no
    guess.
    """
    for _ in range(12):
        await run.phone().rejected()
    await guess(run, 6, pair=True)
    await guess(run, 4)
    await answers(run, 429)
    await answers(run, 101, "203.0.113.6")


@case(FULL, {"MOBILE_ALLOWED_ORIGINS": "https://app.example, https://two.example:8443"})
async def origins_are_checked(run: Run):
    """§1: an Origin must be absent, of the same host, or in MOBILE_ALLOWED_ORIGINS. Others get HTTP
    403.
    """
    for origin in (
        f"http://127.0.0.1:{run.server.port}",
        "https://app.example",
        "https://two.example:8443",
    ):
        await run.connected(origin=origin)
    for origin in (
        "https://evil.example",
        "https://app.example.evil.example",
        "https://app.example:444",
        "null",
        f"http://127.0.0.1.evil.example:{run.server.port}",
        "http://app.example",
    ):
        _, status, _ = await run.raw(headers={"Origin": origin})
        expect(status == 403, f"HTTP 403 for {origin}", status)


@case(CORE, {**EXTRA, **NOT_APPROVED})
async def the_log_keeps_secrets(run: Run):
    """The log never holds a token, a part of one, or an approval code."""
    wrong = fresh_token()
    for token in (wrong, wrong[:40], run.server.token + "0", TABLET + "00"):
        await run.phone(token=token).rejected()
    phone = await run.connected()
    codes = await pairing_codes(phone)
    await run.connected(token=TABLET)
    await run.raw(f"/ws?token={run.server.token}&x=1")
    await run.raw("/elsewhere?token=" + wrong)
    await run.server.stop()
    log = run.server.log()
    for secret in (run.server.token, wrong, TABLET, WATCH):
        parts = {secret[i : i + 12] for i in range(0, len(secret) - 11)}
        expect(
            not any(p in log for p in parts),
            "no part of a token in the output",
            "a part of a token",
        )
    expect(
        not any(code in log for code in codes if not code.isalpha()),
        "no pairing code in the output",
        "a code",
    )
