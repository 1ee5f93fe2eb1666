"""What the tests of this folder do, and wait for, in one step."""

import time


def rounds(request, short, long):
    return long if request.config.getoption("--long") else short


def power_cut(chaos, broker, heal=False):
    """With `heal` no fault outlives it: a broker that hangs in a call can only die once that returns."""
    chaos.tell("cut")
    if heal:
        chaos.tell("clear")
    broker.kill()
    chaos.tell("boot")
    broker.start()


def refusals(chaos):
    """Attempts to begin something new: on a full volume each is refused."""
    return sum(int(chaos.tell(f"count {operation}")) for operation in ("create", "mkdir"))


def last(seconds):
    """A fault that has a duration: no condition ends it, so this is no wait for anything."""
    time.sleep(seconds)


def leader(cluster, topic):
    """One that leads and does not reign."""
    reigns = cluster.controller()
    return next(i for i in cluster.led(topic) if i not in (reigns, -1))
