"""Interleaved rounds, medians, and the bare loop as the judge of a quiet machine."""

import json
import os
import statistics
import subprocess
import time

from .servers import BARE, BIN, BenchError

# Issue 3: a round in which the bare loop is off by 30% from its median is repeated.
NOISE = 0.3


def load(server, arguments, seconds, warmup):
    """One run of bench_load; its JSON."""
    command = [BIN / "bench_load", *arguments, "--broker", server.address, "--pid", str(server.pid),
               "--seconds", str(seconds), "--warmup", str(warmup)]
    # Filling a log before a fetch takes its time where every batch is flushed.
    limit = seconds + warmup + 120
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired as late:
        raise BenchError(f"{server.name}: {arguments[0]} is not over after {limit} s") from late
    if done.returncode != 0:
        raise BenchError(f"{server.name}: {' '.join(arguments)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def settle():
    """What one party left dirty must not be written while the next is measured. Apache deletes a
    topic's files half a second after the answer; after that nothing of it needs writing."""
    time.sleep(0.7)
    os.sync()


def one_round(row, servers, number, seconds):
    """Each party once; who goes first changes from round to round."""
    names = [name for name in row.servers if name in servers]
    turn = number % len(names)
    results = {}
    for name in names[turn:] + names[:turn]:
        settle()
        results[name] = load(servers[name], row.load, seconds, row.warmup)
    return results


def noisy_rounds(rounds, metric):
    values = [one[BARE][metric.key] for one in rounds]
    middle = statistics.median(values)
    return [number for number, value in enumerate(values) if abs(value / middle - 1) > NOISE]


def measure(row, servers, count, seconds, deadline, say):
    """`count` rounds of a row, noisy ones again while there is time (as many again at most)."""
    rounds = [one_round(row, servers, number, seconds) for number in range(count)]
    repeated = 0
    judged = BARE in servers and BARE in row.servers
    while judged and repeated < count and time.monotonic() < deadline:
        noisy = noisy_rounds(rounds, row.steady)
        if not noisy:
            break
        say(f"  round {noisy[0] + 1} again: the bare loop was off by more than {NOISE:.0%}")
        rounds[noisy[0]] = one_round(row, servers, count + repeated, seconds)
        repeated += 1
    left = noisy_rounds(rounds, row.steady) if judged else []
    return {"medians": medians(row, rounds), "rounds": rounds, "repeated": repeated,
            "noisy": len(left)}


def medians(row, rounds):
    keys = [metric.key for metric in row.metrics] + ["other_cpu_s", "seconds"]
    return {name: {key: statistics.median(one[name][key] for one in rounds) for key in keys}
            for name in row.servers if name in rounds[0]}
