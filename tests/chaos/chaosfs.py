"""The file system of chaosfs.cc, mounted for one test."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("KAAS_CHAOSFS", ROOT / "build" / "release" / "tests" / "kaas_chaosfs"))


def missing():
    """Why the file system cannot run here; None when it can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no /dev/fuse"
    if not BINARY.exists():
        return f"{BINARY} is not built: libfuse 3 was missing"
    return None


class ChaosFs:
    """One mount. `tell` speaks the lines that chaosfs.cc lists."""

    def __init__(self, home):
        self.home = pathlib.Path(home)
        self.mountpoint = self.home / "mount"
        self.process = None
        self.control = None

    def __enter__(self):
        for name in ("backing", "mount"):
            (self.home / name).mkdir()
        path = str(self.home / "control")
        self.process = subprocess.Popen([BINARY, self.home / "backing", self.mountpoint, path])
        deadline = time.monotonic() + 30
        self.control = socket.socket(socket.AF_UNIX)
        while True:
            with contextlib.suppress(OSError):
                self.control.connect(path)
                break
            assert self.process.poll() is None and time.monotonic() < deadline, "no mount"
            time.sleep(0.005)
        self.control.settimeout(30)
        return self

    def __exit__(self, *_):
        self.control.close()
        # Lazily: whatever still has a file open there does not keep it mounted.
        subprocess.run(["fusermount3", "-uz", self.mountpoint], check=False)
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()

    def tell(self, line):
        self.control.sendall(line.encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            part = self.control.recv(512)
            assert part, "chaosfs has ended"
            answer += part
        words = answer.decode().split()
        assert words[0] == "ok", f"{line}: {answer.decode()}"
        return words[1] if len(words) > 1 else None


@pytest.fixture
def chaos():
    if reason := missing():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="kaas-chaos-") as home, ChaosFs(home) as mounted:
        yield mounted
