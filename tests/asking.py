"""Asking again, as clients do, and waiting for what a broker does by itself."""

import json
import time
import urllib.request

from kafka_wire.connection import Closed

# What passes by itself: leaders and coordinators on their way, markers under way.
UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER = 3, 6
COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
CONCURRENT_TRANSACTIONS = 51
PASSING = {UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, COORDINATOR_LOAD_IN_PROGRESS,
           COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS}
SECONDS = 60


def until(ask, what, wanted=bool, seconds=SECONDS):
    """The first answer that is wanted; a broker that starts may refuse or close the connection."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if wanted(answer := ask()):
                return answer
        except (OSError, Closed) as error:
            answer = error
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}: {answer}"
        time.sleep(0.01)


def health(broker):
    with urllib.request.urlopen(f"http://{broker.host}:{broker.health_port}/healthz", timeout=10) as answer:
        return json.load(answer)
