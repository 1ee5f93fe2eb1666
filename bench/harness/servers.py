"""The parties of a benchmark, each started in a directory of its own and stopped by who started it."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "release" / "bin"
sys.path.insert(0, str(ROOT / "tests" / "apache"))
import apache  # noqa: E402  (found through the line above)

KAAS = "kaas"
APACHE_FSYNC = "apache fsync"
APACHE_CACHE = "apache cache"
BARE = "bare loop"
BARE_ONE_FILE = "bare, 1 file"

# Deleted topics give their space back at once, not after a minute: rounds would fill the disk.
APACHE_SETTINGS = {"log.segment.delete.delay.ms": "500"}


class BenchError(RuntimeError):
    """A party did not do its part; the benchmark has no result."""


class Process:
    """A server that we started. `address` and `pid` are valid until stop()."""

    def __init__(self, name, command, directory):
        self.name = name
        self.environment = {}  # beside ours
        self._command = [str(part) for part in command]
        self._directory = directory
        self._process = None
        self.address = None
        self.ready_ms = None

    @property
    def pid(self):
        return self._process.pid

    def start(self):
        self._directory.mkdir(parents=True)
        began = time.monotonic()
        with open(self._directory / "output.txt", "wb") as output:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=output,
                                             stderr=subprocess.STDOUT,
                                             env=os.environ | self.environment)
        port = int(self.address.rpartition(":")[2])
        while not apache.answers_api_versions(port, 0.5):
            if self._process.poll() is not None or time.monotonic() - began > 30:
                self.stop()
                raise BenchError(f"{self.name} does not answer:\n{self._output()}")
            time.sleep(0.0005)
        self.ready_ms = (time.monotonic() - began) * 1000
        return self

    def stop(self):
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        output = self._output()
        shutil.rmtree(self._directory, ignore_errors=True)
        if self._process.returncode not in (0, -signal.SIGTERM):
            raise BenchError(f"{self.name} ended with {self._process.returncode}:\n{output}")

    def _output(self):
        return (self._directory / "output.txt").read_text(errors="replace")[-4000:]


class Kaas(Process):
    def __init__(self, directory, overrides=()):
        port, = apache.free_ports(1)
        settings = [f"listeners=PLAINTEXT://127.0.0.1:{port}", f"log.dirs={directory / 'data'}",
                    *overrides]
        command = [BIN / "kaas", "serve"]
        for setting in settings:
            command += ["--override", setting]
        super().__init__(KAAS, command, directory)
        self.address = f"127.0.0.1:{port}"


class BareLoop(Process):
    def __init__(self, name, directory, *options):
        port, = apache.free_ports(1)
        super().__init__(name, [BIN / "bench_bare_loop", "--dir", directory, "--port", port, *options],
                         directory)
        self.address = f"127.0.0.1:{port}"


class Apache:
    """The same face for Apache's own node."""

    def __init__(self, name, directory, fsync):
        self.name = name
        self._directory = directory
        self._node = apache.Apache(fsync=fsync, data_dir=directory, settings=APACHE_SETTINGS)
        self.ready_ms = None

    @property
    def pid(self):
        return self._node.pid

    @property
    def address(self):
        return self._node.bootstrap

    def start(self):
        self._node.start()
        self.ready_ms = self._node.ready_seconds * 1000
        return self

    def stop(self):
        self._node.stop()
        shutil.rmtree(self._directory, ignore_errors=True)


def make(name, directory, kaas_overrides=()):
    match name:
        case "kaas": return Kaas(directory, kaas_overrides)
        case "apache fsync": return Apache(name, directory, fsync=True)
        case "apache cache": return Apache(name, directory, fsync=False)
        case "bare loop": return BareLoop(name, directory)
        case "bare, 1 file": return BareLoop(name, directory, "--single-file")
    raise AssertionError(name)


@contextlib.contextmanager
def running(names, directory, kaas_overrides=()):
    """All of them at once, by name: an idle one costs next to nothing, starting them anew would."""
    with contextlib.ExitStack() as stack:
        started = {}
        for number, name in enumerate(names):
            server = make(name, directory / f"{number}-{name.replace(' ', '-')}", kaas_overrides)
            server.start()
            stack.callback(server.stop)
            started[name] = server
        yield started
