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


def missing(binary=BINARY):
    """Why the file system cannot run here; None when it can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no /dev/fuse"
    if not binary.exists():
        return f"{binary} is not built: libfuse 3 was missing"
    return None


class Control:
    """Tells a file system what to do, a line at a time."""

    def __init__(self, path, process):
        self.socket = socket.socket(socket.AF_UNIX)
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError):
                self.socket.connect(str(path))
                break
            assert process.poll() is None and time.monotonic() < deadline, "no mount"
            time.sleep(0.005)
        self.socket.settimeout(30)

    def tell(self, line):
        self.socket.sendall(line.encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            part = self.socket.recv(512)
            assert part, "the file system has ended"
            answer += part
        words = answer.decode().split()
        assert words[0] == "ok", f"{line}: {answer.decode()}"
        return words[1] if len(words) > 1 else None

    def close(self):
        self.socket.close()


def stop(process, mountpoints):
    # Lazily: whatever still has a file open there does not keep it mounted.
    for mountpoint in mountpoints:
        subprocess.run(["fusermount3", "-uz", mountpoint], check=False)
    process.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    process.kill()
    process.wait()


class ChaosFs:
    """One mount. `tell` speaks the lines that chaosfs.cc lists."""

    def __init__(self, home):
        self.home = pathlib.Path(home)
        self.mountpoint = self.home / "mount"
        self.process = None

    def __enter__(self):
        for name in ("backing", "mount"):
            (self.home / name).mkdir()
        path = self.home / "control"
        self.process = subprocess.Popen([BINARY, self.home / "backing", self.mountpoint, path])
        self.control = Control(path, self.process)
        self.tell = self.control.tell
        return self

    def __exit__(self, *_):
        self.control.close()
        stop(self.process, [self.mountpoint])


@pytest.fixture
def chaos():
    if reason := missing():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="kaas-chaos-") as home, ChaosFs(home) as mounted:
        yield mounted
