"""A raw connection that sends any bytes and reads whole answers."""

import itertools
import socket
import struct

from . import codec


class Closed(Exception):
    """The broker closed the connection."""


class Connection:
    def __init__(self, address: str, client_id: str | None = "test", timeout: float = 20):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id = client_id
        self.correlations = itertools.count(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        self.socket.close()

    def request_bytes(self, name: str, version: int, body: dict | bytes, correlation: int = 0,
                      header_version: int | None = None) -> bytes:
        """A request without its length prefix; `body` may be raw bytes."""
        api = codec.api(name)
        flexible = api.request.flexible_in(version)
        header = next(m for m in codec.protocol().standalone if m.name == "RequestHeader")
        head = codec.encode(header, header_version or (2 if flexible else 1), {
            "request_api_key": api.key, "request_api_version": version,
            "correlation_id": correlation, "client_id": self.client_id})
        return head + (body if isinstance(body, bytes) else codec.encode(api.request, version, body))

    def send_frame(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def send(self, name: str, version: int, body: dict | bytes) -> int:
        correlation = next(self.correlations)
        self.send_frame(self.request_bytes(name, version, body, correlation))
        return correlation

    def read_exactly(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            try:
                part = self.socket.recv(count - len(parts))
            except ConnectionError as error:
                raise Closed(str(error)) from error
            if not part:
                raise Closed(f"after {len(parts)} of {count} bytes")
            parts += part
        return bytes(parts)

    def receive_frame(self) -> bytes:
        return self.read_exactly(struct.unpack(">i", self.read_exactly(4))[0])

    def receive(self, name: str, version: int, correlation: int) -> dict:
        frame = self.receive_frame()
        got, = struct.unpack(">i", frame[:4])
        assert got == correlation, f"answer to {got}, wanted {correlation}"
        api = codec.api(name)
        # ApiVersions answers with header version 0 always, so that any client can read it (KIP-511).
        tagged = api.response.flexible_in(version) and name != "ApiVersions"
        return codec.decode(api.response, version, frame[5 if tagged else 4:])

    def call(self, name: str, version: int, body: dict | bytes | None = None) -> dict:
        return self.receive(name, version, self.send(name, version, body or {}))

    def is_closed(self, wait: float = 30) -> bool:
        """True when the broker closes without a further byte; False when it answers or stays silent."""
        self.socket.settimeout(wait)
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False
