#!/usr/bin/env python3
"""A real Apache Kafka node, from Maven Central's jars, for tests and benchmarks.

In a test:

    with Apache(fsync=True, settings={"num.partitions": "4"}) as kafka:
        kafka.tool("kafka-topics", "--create", "--topic", "t")
        connect_to(kafka.bootstrap)

On the command line: `apache.py start`, `apache.py tool kafka-topics --list`, `apache.py stop DIR`; see
`apache.py --help`. The node is one process with broker and controller in it, listens on 127.0.0.1
alone and gets free ports. Only processes that this module started are ever signalled.
"""

import argparse
import base64
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "4.4.0"

# What kafka-run-class.sh of the distribution gives every JVM.
JVM_FLAGS = (
    "-server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35 "
    "-XX:+ExplicitGCInvokesConcurrent -Djava.awt.headless=true"
).split()

# A single node needs every internal topic at one replica; the rest stays at Apache's defaults.
SINGLE_NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class ApacheError(RuntimeError):
    """The node could not be fetched, started or stopped; the text ends with its log."""


# ---- jars and the JVM -------------------------------------------------------------------------


def cache_dir():
    """Where fetched files are kept: $KAAS_CACHE_DIR, else .cache of the main checkout, so that linked
    git worktrees share one copy."""
    if "KAAS_CACHE_DIR" in os.environ:
        return pathlib.Path(os.environ["KAAS_CACHE_DIR"])
    found = subprocess.run(
        ["git", "-C", str(HERE), "rev-parse", "--path-format=absolute", "--git-common-dir"],
        capture_output=True, text=True, check=False)
    git_dir = pathlib.Path(found.stdout.strip()) if found.returncode == 0 else None
    if git_dir and git_dir.name == ".git":
        return git_dir.parent / ".cache"
    return HERE.parents[1] / ".cache"


def jars():
    """The directory of the jars; Maven is asked once, and again when pom.xml has changed."""
    home = cache_dir() / f"apache-{VERSION}"
    home.mkdir(parents=True, exist_ok=True)
    pom = (HERE / "pom.xml").read_bytes()
    stamp = home / "pom.xml"
    directory = home / "jars"
    with open(home / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_bytes() == pom:
            return directory
        shutil.rmtree(directory, ignore_errors=True)
        maven = subprocess.run(
            ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies",
             "-DincludeScope=runtime", f"-DoutputDirectory={directory}"],
            capture_output=True, text=True, check=False)
        if maven.returncode != 0:
            raise ApacheError(f"maven failed:\n{maven.stdout[-4000:]}{maven.stderr[-2000:]}")
        stamp.write_bytes(pom)
    return directory


def java():
    """A JVM of version 17 or newer: $KAFKA_JDK, $JAVA_HOME, the newest of /usr/lib/jvm, else PATH."""
    for home in filter(None, (os.environ.get("KAFKA_JDK"), os.environ.get("JAVA_HOME"))):
        if os.access(f"{home}/bin/java", os.X_OK):
            return f"{home}/bin/java"
    best, best_version = shutil.which("java"), 0
    for release in pathlib.Path("/usr/lib/jvm").glob("*/release"):
        fields = dict(line.split("=", 1) for line in release.read_text().splitlines() if "=" in line)
        version = int(fields.get("JAVA_VERSION", '"0"').strip('"').split(".")[0])
        binary = release.parent / "bin" / "java"
        if version > best_version and os.access(binary, os.X_OK):
            best, best_version = str(binary), version
    if not best:
        raise ApacheError("no JVM found: install openjdk-17-jre-headless, or set JAVA_HOME")
    return best


def classpath(*extra):
    return ":".join([f"{jars()}/*", *map(str, extra)])


def jvm_command(main_class, *args, heap="256m", level="WARN", target="SYSTEM_ERR", flags=(), classes=()):
    return [java(), f"-Xmx{heap}", *JVM_FLAGS, *flags,
            f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}",
            f"-Dkaas.log.level={level}", f"-Dkaas.log.target={target}",
            "-cp", classpath(*classes), main_class, *map(str, args)]


def javac(source, directory):
    """Compiles a program against the jars; it runs with `directory` in the class path."""
    compiler = pathlib.Path(java()).resolve().parent / "javac"
    subprocess.run([compiler, "-nowarn", "-d", directory, "-cp", classpath(), source], check=True)
    return directory


def tool_class(name):
    """The main class of a console tool, by its script's name (kafka-topics) or its own."""
    rows = (line.split("\t") for line in (HERE / "tools.tsv").read_text().splitlines()[1:])
    main_class = dict(rows).get(name.removesuffix(".sh"), name)
    if "." not in main_class:
        raise ApacheError(f"no such tool in tools.tsv: {name}")
    return main_class


def tool_command(name, *args):
    """The command line of a console tool."""
    main_class = tool_class(name)
    big = any(word in name for word in ("perf", "console", "verifiable"))
    return jvm_command(main_class, *args, heap="512m" if big else "256m")


class Tools:
    """Console tools in one JVM, for tests that call many: see Tools.java. `with Tools(DIR) as tools`."""

    def __init__(self, directory):
        self._directory = directory
        self._process = None

    def __enter__(self):
        command = jvm_command("Tools", classes=[javac(HERE / "Tools.java", self._directory)], level="ERROR")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        try:
            self._process.wait(10)
        finally:
            self._process.kill()
            self._process.wait()

    def run(self, name, *args):
        """(exit code, what it printed). There is no time limit: it is the test's."""
        line = "\t".join([tool_class(name), *map(str, args)])
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        code, length = self._process.stdout.readline().split()
        return int(code), self._process.stdout.read(int(length)).decode()


# ---- the node ---------------------------------------------------------------------------------


def free_ports(count):
    """Ports that were free a moment ago, all different; a start that loses one tries again."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def answers_api_versions(port, timeout_s=2.0):
    """Whether 127.0.0.1:port gives a good ApiVersions v0 answer: the ready probe of any broker."""
    body = struct.pack(">hhih", 18, 0, 7, 5) + b"probe"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout_s) as peer:
            peer.settimeout(timeout_s)
            peer.sendall(struct.pack(">i", len(body)) + body)
            answer = b""
            while len(answer) < 10:
                piece = peer.recv(64)
                if not piece:
                    return False
                answer += piece
            return struct.unpack(">ih", answer[4:10]) == (7, 0)
    except OSError:
        return False


class Apache:
    """One Apache Kafka node: formatted if new, started, probed, stopped.

    fsync     flush every batch (log.flush.interval.messages=1), the promise kaas makes by default
    data_dir  kept if given; otherwise a temporary directory that stop() removes
    port      0 takes a free one
    settings  further server.properties, the later winning; `listeners` and
              `listener.security.protocol.map` may name more listeners
    """

    def __init__(self, *, fsync=False, data_dir=None, port=0, settings=None, heap="1g",
                 jvm_flags=(), ready_timeout_s=120):
        self._fsync = fsync
        self._own_dir = data_dir is None
        self._dir = pathlib.Path(data_dir or tempfile.mkdtemp(prefix="apache-kafka-")).absolute()
        self._wanted_port = port
        self._settings = dict(settings or {})
        self._heap = heap
        self._jvm_flags = list(jvm_flags)
        self._ready_timeout_s = ready_timeout_s
        self._process = None
        self.port = None
        self.ready_seconds = None

    # What a user asks of it

    @property
    def bootstrap(self):
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self):
        return self._process.pid if self._process else None

    @property
    def directory(self):
        return self._dir

    @property
    def data_dir(self):
        """Apache's log.dirs: the partitions' directories stand in it."""
        return self._dir / "data"

    @property
    def log_path(self):
        return self._dir / "server.log"

    def start(self):
        """Returns once the node answers. A lost race for a free port is tried again."""
        if self._process and self._process.poll() is None:
            raise ApacheError(f"already running as pid {self.pid}")
        for attempt in range(3):
            try:
                self._start_once()
                return self
            except ApacheError as error:
                if self._wanted_port or "Address already in use" not in str(error) or attempt == 2:
                    self.stop()
                    raise
        raise AssertionError("unreachable")

    def stop(self):
        """SIGTERM, at most 60 s of patience, then SIGKILL; a temporary directory goes too."""
        self._end(signal.SIGTERM)
        if self._own_dir:
            shutil.rmtree(self._dir, ignore_errors=True)

    def kill(self):
        """SIGKILL; the data stays, so that start() shows the recovery."""
        self._end(signal.SIGKILL)

    def tool(self, name, *args, bootstrap=True, check=True, **popen):
        """Runs a console tool against this node and returns the CompletedProcess (text)."""
        where = ("--bootstrap-server", self.bootstrap) if bootstrap else ()
        popen.setdefault("timeout", 120)
        done = subprocess.run(tool_command(name, *where, *args), capture_output=True, text=True,
                              check=False, **popen)
        if check and done.returncode != 0:
            raise ApacheError(f"{name} {args}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # How

    def _properties(self, port, controller_port):
        listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}"
        properties = SINGLE_NODE | {
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
            "listeners": listeners,
            "advertised.listeners": listeners,
            "log.dirs": str(self.data_dir),
        }
        if self._fsync:
            properties["log.flush.interval.messages"] = "1"
        return properties | {key: str(value) for key, value in self._settings.items()}

    def _format(self, config):
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        done = subprocess.run(
            jvm_command("kafka.tools.StorageTool", "format", "--standalone", "--ignore-formatted",
                        f"--cluster-id={cluster_id}", "-c", config),
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ApacheError(f"format failed:\n{done.stdout}{done.stderr}")

    def _start_once(self):
        self.data_dir.mkdir(parents=True, exist_ok=True)
        port, controller_port = free_ports(2)
        self.port = self._wanted_port or port
        config = self._dir / "server.properties"
        properties = self._properties(self.port, controller_port)
        config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        if not (self.data_dir / "meta.properties").exists():
            self._format(config)
        command = jvm_command("kafka.Kafka", config, heap=self._heap, level="INFO",
                              target="SYSTEM_OUT",
                              flags=[f"-Xms{self._heap}", f"-Dkafka.logs.dir={self._dir}",
                                     *self._jvm_flags])
        started = time.monotonic()
        with open(self.log_path, "wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                             stderr=subprocess.STDOUT, start_new_session=True)
        while not answers_api_versions(self.port):
            if self._process.poll() is not None:
                raise ApacheError(f"exit {self._process.returncode} at start:\n{self._log_tail()}")
            if time.monotonic() - started > self._ready_timeout_s:
                self._end(signal.SIGKILL)
                raise ApacheError(f"not ready in {self._ready_timeout_s} s:\n{self._log_tail()}")
            time.sleep(0.02)
        self.ready_seconds = time.monotonic() - started

    def _log_tail(self):
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-40:])

    def _end(self, with_signal):
        if self._process and self._process.poll() is None:
            self._process.send_signal(with_signal)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None


# ---- the command line -------------------------------------------------------------------------


def start_in_background(options):
    directory = pathlib.Path(options.dir or tempfile.mkdtemp(prefix="apache-kafka-")).absolute()
    settings = dict(pair.split("=", 1) for pair in options.set)
    node = Apache(fsync=options.fsync, data_dir=directory, port=options.port, settings=settings,
                  heap=options.heap)
    node.start()
    state = {"pid": node.pid, "started": process_start_time(node.pid), "bootstrap": node.bootstrap,
             "ready_seconds": round(node.ready_seconds, 3), "directory": str(directory),
             "remove": options.dir is None}
    (directory / "node.json").write_text(json.dumps(state))
    print(json.dumps(state))


def process_start_time(pid):
    """Field 22 of /proc/pid/stat: with the pid it names a process for ever; None if it is gone."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state == "Z" else int(fields[18])


def stop_in_background(options):
    directory = pathlib.Path(options.dir)
    state = json.loads((directory / "node.json").read_text())
    pid = state["pid"]
    if process_start_time(pid) == state["started"]:
        os.kill(pid, signal.SIGKILL if options.kill else signal.SIGTERM)
        deadline = time.monotonic() + 60
        while process_start_time(pid) == state["started"]:
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
    (directory / "node.json").unlink()
    if state["remove"]:
        shutil.rmtree(directory)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("fetch", help="bring the jars into the cache and print where they are")
    verbs.add_parser("classpath", help="print the class path of the jars")
    start = verbs.add_parser("start", help="start a node; prints pid, address, directory as JSON")
    start.add_argument("--fsync", action="store_true", help="log.flush.interval.messages=1")
    start.add_argument("--port", type=int, default=0, help="default: a free one")
    start.add_argument("--dir", help="kept after stop; default: a temporary one, removed by stop")
    start.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    start.add_argument("--heap", default="1g")
    stop = verbs.add_parser("stop", help="stop the node of a directory")
    stop.add_argument("dir")
    stop.add_argument("--kill", action="store_true", help="SIGKILL")
    tool = verbs.add_parser("tool", help="run a console tool: tool kafka-topics --list ...")
    tool.add_argument("name")
    tool.add_argument("args", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    try:
        match options.verb:
            case "fetch": print(jars())
            case "classpath": print(classpath())
            case "start": start_in_background(options)
            case "stop": stop_in_background(options)
            case "tool":
                command = tool_command(options.name, *options.args)
                os.execv(command[0], command)
    except ApacheError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
