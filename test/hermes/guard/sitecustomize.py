"""Keeps a Hermes under test off the network: only loopback addresses and Unix sockets work.

Python imports this module by itself because the harness puts its folder on PYTHONPATH. An audit
hook sees every look-up and every connection, whatever library makes it; what is not loopback fails
at once (no DNS wait, no retry delay) and is noted in the file named by HERMES_TEST_NET_LOG.
"""

import ipaddress
import os
import sys

_LOCAL_NAMES = {None, "", "localhost", b"localhost", "0.0.0.0", "::"}
_LOG = os.environ.get("HERMES_TEST_NET_LOG")


def _is_local(host: object) -> bool:
    if host in _LOCAL_NAMES:
        return True
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    try:
        return ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
    except ValueError:
        return False


def _hook(event: str, args: tuple) -> None:
    if event in ("socket.connect", "socket.sendto"):
        address = args[1]
        if not isinstance(address, tuple):  # a Unix socket's path, or None on a connected socket
            return
        host = address[0]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = args[0]
    else:
        return
    if _is_local(host):
        return
    if _LOG:
        with open(_LOG, "a", encoding="utf-8") as log:
            log.write(f"{event} {host!s}\n")
    raise OSError(f"test guard: {host!s} is not loopback")


sys.addaudithook(_hook)
