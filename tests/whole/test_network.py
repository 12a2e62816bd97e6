import socket
import urllib.error
import urllib.request

import pytest


@pytest.mark.parametrize("address", ["192.0.2.1", "8.8.8.8"])
def test_no_connection_leaves_this_machine(address):
    for ask in (
        lambda: socket.create_connection((address, 80), timeout=1),
        lambda: socket.socket().connect_ex((address, 80)),
        lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", (address, 53)),
    ):
        with pytest.raises(OSError, match="tests reach no network"):
            ask()
    with pytest.raises(urllib.error.URLError, match="tests reach no network"):
        urllib.request.urlopen("http://example.org", timeout=1)
