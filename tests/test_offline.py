"""The tests' own fence: no test, and no process a test starts, can reach another machine."""

import socket
import subprocess
import sys
import threading

import pytest

# A group address: the system itself refuses a stream to it, so nothing leaves even without the fence.
ELSEWHERE = ("224.0.0.1", 9)


def test_connecting_to_another_machine_raises():
    with socket.socket() as client, pytest.raises(OSError, match="only connect to this machine"):
        client.connect(ELSEWHERE)
    with socket.socket() as client, pytest.raises(OSError, match="only connect to this machine"):
        client.connect_ex(ELSEWHERE)
    with (
        socket.socket(type=socket.SOCK_DGRAM) as client,
        pytest.raises(OSError, match="only connect to this"),
    ):
        client.sendto(b"", ELSEWHERE)


def test_looking_up_another_machines_name_raises():
    for lookup in (
        socket.gethostbyname,
        lambda name: socket.getaddrinfo(name, 80),
        lambda name: socket.create_connection((name, 80)),
    ):
        with pytest.raises(OSError, match="only connect to this machine, not to 'elsewhere.invalid'"):
            lookup("elsewhere.invalid")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_connecting_to_this_machine_works(host):
    with socket.create_server(("127.0.0.1", 0)) as server:
        answer = threading.Thread(target=lambda: server.accept()[0].sendall(b"hello"))
        answer.start()
        with socket.create_connection((host, server.getsockname()[1]), timeout=10) as client:
            assert client.recv(5) == b"hello"
        answer.join(10)


def test_processes_started_by_tests_are_fenced_in_too():
    code = f"import socket; socket.socket().connect({ELSEWHERE})"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.returncode == 1
    assert "tests may only connect to this machine" in child.stderr
