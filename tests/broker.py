"""A kaas broker of a test's own, on 127.0.0.1.

    def test_something(kaas):                # started, empty, stopped at the end
        connect_to(kaas.bootstrap)

    def test_other(kaas_factory):            # as many as wanted, with settings
        broker = kaas_factory({"num.partitions": "3"})
        broker.kill()
        broker.start()

$KAAS_BINARY names another binary than build/release/bin/kaas, as the sanitizer runs do. With
$KAAS_TEST_AGAINST=apache the fixtures start Apache's broker instead: there a new test proves itself.
"""

import contextlib
import os
import pathlib
import signal
import socket
import struct
import subprocess
import tempfile
import time

import apache
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Bounds for a machine under load, not expectations: a broker that is quick costs its own time alone.
START_SECONDS = 60
STOP_SECONDS = 60


class BrokerError(RuntimeError):
    """The broker did not start or did not stop as it should; the text ends with its log."""


def binary():
    return pathlib.Path(os.environ.get("KAAS_BINARY", ROOT / "build" / "release" / "bin" / "kaas"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Broker:
    """One broker process and its directory. Signals go to the process started here and no other."""

    host = "127.0.0.1"
    prefix = ()  # what the command line begins with

    def __init__(self, directory, settings=None, port=None):
        self.directory = pathlib.Path(directory)
        self.port = port or free_port()
        self.health_port = free_port()
        self.settings = dict(settings or {})
        self.log_path = self.directory / "kaas.log"
        self.process = None

    @property
    def bootstrap(self):
        return f"{self.host}:{self.port}"

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def command(self):
        settings = {
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "log.dirs": str(self.directory / "data"),
            "kaas.health.listener": f"{self.host}:{self.health_port}",
            **self.settings,
        }
        overrides = [word for key, value in settings.items() if value is not None
                     for word in ("--override", f"{key}={value}")]
        return [*self.prefix, str(binary()), "serve", *overrides]

    def start(self):
        """Starts the process and returns once its port answers."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, cwd=self.directory)
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.process.poll() is not None:
                raise BrokerError(f"exit {self.process.returncode} at start\n{self.log()[-8000:]}")
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerError(f"no answer in {START_SECONDS} s\n{self.log()[-8000:]}")
            time.sleep(0.005)
        return self

    def _answers(self):
        """ApiVersions 0 is answered: a listener alone is bound before there is anything to serve."""
        with contextlib.suppress(OSError), socket.create_connection((self.host, self.port), 5) as probe:
            probe.sendall(struct.pack(">ihhih", 10, 18, 0, 0, -1))
            return probe.recv(1) != b""
        return False

    def kill(self):
        """kill -9, as a crash is."""
        process, self.process = self.process, None
        if process:
            process.kill()
            process.wait()

    def stop(self):
        """SIGTERM; an exit that is late, not 0, or that came earlier by itself is an error."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerError(f"alive {STOP_SECONDS} s after SIGTERM\n{self.log()[-8000:]}") from None
        if status != 0:
            raise BrokerError(f"exit {status}, SIGTERM should give 0\n{self.log()[-8000:]}")
        self.process = None


class ApacheBroker(apache.Apache):
    """Apache's broker in the place of ours."""

    def __init__(self, directory, settings=None, port=None):
        super().__init__(data_dir=directory, port=port or free_port(), settings={
            key: value for key, value in (settings or {}).items() if not key.startswith("kaas.")})

    def log(self):
        return self.log_path.read_text(errors="replace")


def make_broker(directory, settings=None, port=None):
    against_apache = os.environ.get("KAAS_TEST_AGAINST") == "apache"
    return (ApacheBroker if against_apache else Broker)(directory, settings, port)


@pytest.fixture
def kaas_factory():
    """Starts brokers; each one that still lives is stopped, and must stop well, at the end."""
    with contextlib.ExitStack() as cleanup:
        def start(settings=None, directory=None, port=None):
            home = directory or cleanup.enter_context(tempfile.TemporaryDirectory(prefix="kaas-"))
            broker = make_broker(home, settings, port)
            cleanup.callback(broker.kill)
            broker.start()
            cleanup.callback(broker.stop)
            return broker
        yield start


@pytest.fixture
def kaas(kaas_factory):
    return kaas_factory()


@pytest.fixture(scope="module")
def shared_kaas():
    """One broker for all tests of a file, for those that only need one with names of their own."""
    with tempfile.TemporaryDirectory(prefix="kaas-") as home:
        broker = make_broker(home).start()
        try:
            yield broker
        finally:
            try:
                broker.stop()
            finally:
                broker.kill()
