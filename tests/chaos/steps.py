"""What the tests of this folder do, and wait for, in one step."""

import json
import time
import urllib.request


def rounds(request, short, long):
    return long if request.config.getoption("--long") else short


def power_cut(chaos, broker):
    chaos.tell("cut")
    broker.kill()
    chaos.tell("boot")
    broker.start()


def health(broker):
    with urllib.request.urlopen(f"http://127.0.0.1:{broker.health_port}/healthz", timeout=10) as answer:
        return json.load(answer)


def until(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def refusals(chaos):
    """Attempts to begin something new: on a full volume each is refused."""
    return sum(int(chaos.tell(f"count {operation}")) for operation in ("create", "mkdir"))
