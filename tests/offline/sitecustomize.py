"""Keeps the tests on this machine: connecting anywhere but to a loopback address raises OSError.

The folder of this file is put on PYTHONPATH by conftest.py. Python imports a module of this name when it
starts, so the processes that tests start (servers, command lines) are held to the same rule as the tests.
"""

import errno
import functools
import ipaddress
import socket
from collections.abc import Callable
from typing import Any


def is_this_machine(host: str | bytes | None) -> bool:
    """Whether a host, as given to connect or getaddrinfo, is a loopback address or a name of this machine."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost", socket.gethostname()):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def refuse(host: str | bytes | None) -> None:
    if not is_this_machine(host):
        raise OSError(errno.ENETUNREACH, f"tests may only connect to this machine, not to {host!r}")


def guard_method(original: Callable[..., Any]) -> Callable[..., Any]:
    """For methods of a socket whose last argument is an address: connect, connect_ex, sendto."""

    @functools.wraps(original)
    def guarded(self: socket.socket, *arguments: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            refuse(arguments[-1][0])
        return original(self, *arguments)

    return guarded


def guard_lookup(original: Callable[..., Any]) -> Callable[..., Any]:
    """For functions whose first argument is a host name: looking it up would already ask a name server."""

    @functools.wraps(original)
    def guarded(host: str | bytes | None, *arguments: Any, **options: Any) -> Any:
        refuse(host)
        return original(host, *arguments, **options)

    return guarded


for method in ("connect", "connect_ex", "sendto"):
    setattr(socket.socket, method, guard_method(getattr(socket.socket, method)))
for lookup in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
    setattr(socket, lookup, guard_lookup(getattr(socket, lookup)))
