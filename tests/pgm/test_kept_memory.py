"""Freed memory stays with the process, so that the next tensor costs no page faults."""

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
from pgm.kept_memory import keep_freed_memory
kept = keep_freed_memory() if sys.argv[1] == "keep" else True
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    bytearray(b"x") * 2**26
began = faults()
for _ in range(5):
    bytearray(b"x") * 2**26
print(kept, faults() - began)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc alone")
def test_freed_memory_costs_no_page_faults_when_it_is_used_again():
    found = {}
    usual = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    for how in ("keep", "leave"):
        command = [sys.executable, "-c", PROGRAM, how]
        said = subprocess.run(command, capture_output=True, text=True, check=True, env=usual).stdout
        kept, found[how] = said.split()[0], int(said.split()[1])
        assert kept == "True"
    assert found["keep"] < 100 < found["leave"]


def test_elsewhere_nothing_is_done(monkeypatch):
    from pgm import kept_memory

    monkeypatch.setattr(kept_memory.sys, "platform", "darwin")
    assert not kept_memory.keep_freed_memory()
