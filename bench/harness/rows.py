"""What is measured, and which of it is a promise. Numbers of the targets: the project's issues 3 to 5."""

import dataclasses

from .servers import APACHE_CACHE, APACHE_FSYNC, BARE, BARE_ONE_FILE, KAAS

ALL = (KAAS, APACHE_FSYNC, APACHE_CACHE, BARE)


@dataclasses.dataclass(frozen=True)
class Metric:
    key: str      # in the JSON of bench_load
    label: str
    digits: int = 0


MB_S = Metric("mb_s", "MB/s")
REQUESTS_S = Metric("requests_s", "requests/s")
COMMITS_S = Metric("requests_s", "commits/s")
RECORDS_S = Metric("records_s", "records/s")
CPU_US = Metric("broker_cpu_us_request", "CPU us/request", 1)
CPU_GB = Metric("broker_cpu_s_gb", "CPU s/GB", 3)
P50 = Metric("p50_ms", "p50 ms", 3)
P99 = Metric("p99_ms", "p99 ms", 3)
READY_MS = Metric("ready_ms", "ms to first answer", 1)
RSS = Metric("broker_rss_mb", "memory MB", 1)


@dataclasses.dataclass(frozen=True)
class Target:
    """kaas against `factor` times another party, or against `factor` itself where there is none.
    An aim is what we would like; it is shown and never fails."""

    metric: Metric
    at_least: bool
    factor: float
    other: str | None = None
    aim: bool = False

    def met(self, kaas, other):
        bound = self.factor * other if self.other else self.factor
        return kaas >= bound if self.at_least else kaas <= bound

    def text(self):
        sign = ">=" if self.at_least else "<="
        of = f" x {self.other}" if self.other else ""
        return f"{'aim ' if self.aim else ''}{sign} {self.factor:g}{of}"


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    title: str
    load: tuple          # arguments of bench_load
    metrics: tuple
    steady: Metric       # the bare loop's value that tells a quiet round from a noisy one, if it runs
    servers: tuple = ALL
    targets: tuple = ()
    quick: bool = False  # part of --quick
    warmup: float = 1    # seconds before it counts


def at_least(metric, factor, other=None, aim=False):
    return Target(metric, True, factor, other, aim)


def at_most(metric, factor, other=None, aim=False):
    return Target(metric, False, factor, other, aim)


ONE_KB = ("--records", "1", "--value-bytes", "1024")
SIXTEEN_KB = ("--records", "16", "--value-bytes", "1024")
WARM = (KAAS, APACHE_CACHE, BARE)
COORDINATORS = (KAAS, APACHE_FSYNC, APACHE_CACHE)

ROWS = (
    Row("produce-16k", "produce: 16 KB batches, acks=all, 1 connection, 5 in flight",
        ("produce", *SIXTEEN_KB), (MB_S, P50, P99, CPU_US), MB_S, quick=True,
        targets=(at_least(MB_S, 4, APACHE_FSYNC), at_least(MB_S, 1, APACHE_CACHE, aim=True),
                 at_most(CPU_US, 0.25, APACHE_FSYNC), at_most(CPU_US, 1, BARE, aim=True))),
    Row("produce-500", "produce: 500 requests/s of 1 KB, acks=all",
        ("produce", *ONE_KB, "--rate", "500"), (P50, P99, CPU_US), P50, quick=True,
        targets=(at_most(P50, 0.25, APACHE_FSYNC), at_most(P99, 1 / 3, APACHE_FSYNC))),
    Row("fetch-1m", "fetch: cached, 1 MB a partition",
        ("fetch", *SIXTEEN_KB, "--bytes", "1048576", "--in-flight", "1"), (MB_S, CPU_GB), MB_S,
        servers=WARM, quick=True,
        targets=(at_least(MB_S, 0.9, APACHE_CACHE), at_most(CPU_GB, 1, APACHE_CACHE))),
    Row("fetch-16k", "fetch: cached, 16 KB",
        ("fetch", *SIXTEEN_KB, "--bytes", "16384", "--in-flight", "1"),
        (REQUESTS_S, P50, CPU_US), REQUESTS_S, servers=WARM, quick=True,
        targets=(at_most(CPU_US, 0.5, APACHE_CACHE),)),
    Row("e2e", "end to end: 200/s of 1 KB, long poll",
        ("e2e", *ONE_KB, "--rate", "200"), (P50, P99, CPU_US), P50),
    Row("produce-1m", "produce: 1 MB batches, 6 partitions",
        ("produce", "--records", "1000", "--value-bytes", "1000", "--partitions", "6"),
        (MB_S, P50, CPU_GB), MB_S),
    Row("produce-100p", "produce: 1 KB to 100 partitions, 10 connections of 5 in flight",
        ("produce", *ONE_KB, "--partitions", "100", "--connections", "10"),
        (REQUESTS_S, P50, P99, CPU_US), REQUESTS_S, servers=(*ALL, BARE_ONE_FILE)),
    # Issue 4: within 1.5 times of 100. A partition's first write makes its files: that is not counted.
    Row("produce-1000p", "produce: 1 KB to 1,000 partitions, 10 connections of 5 in flight",
        ("produce", *ONE_KB, "--partitions", "1000", "--connections", "10"),
        (REQUESTS_S, P50, P99, CPU_US), REQUESTS_S, servers=(KAAS, BARE_ONE_FILE), warmup=6),
    Row("produce-10p", "produce: 10 partitions a request, 10 x 100 B each",
        ("produce", "--records", "10", "--value-bytes", "100", "--partitions", "10",
         "--partitions-per-request", "10"),
        (RECORDS_S, P50, CPU_US), RECORDS_S, servers=(*ALL, BARE_ONE_FILE)),
    Row("metadata", "metadata: one topic", ("metadata", "--in-flight", "1"),
        (REQUESTS_S, CPU_US), REQUESTS_S, servers=WARM),
    # Issue 5. The bare loop keeps no groups.
    Row("commit-50", "offset commits: 50 connections, 50 groups, 10 partitions each",
        ("commit", "--connections", "50", "--partitions", "10", "--in-flight", "1"),
        (COMMITS_S, P50, P99, CPU_US), COMMITS_S, servers=COORDINATORS,
        targets=(at_least(COMMITS_S, 1, APACHE_CACHE), at_most(P99, 8))),
    Row("transaction", "transactions: 10 records over 5 partitions, one producer",
        ("transaction", "--partitions", "5", "--records", "2", "--value-bytes", "100"),
        (COMMITS_S, P50, P99, CPU_US), COMMITS_S, servers=COORDINATORS,
        targets=(at_least(COMMITS_S, 500), at_most(P50, 2))),
    Row("rebalance-100", "a newcomer to 100 cooperative members, who answer at once",
        ("rebalance", "--members", "100"), (P50, P99, CPU_US), P50, servers=COORDINATORS,
        targets=(at_most(P50, 500), at_most(P50, 1, APACHE_CACHE, aim=True))),
    Row("connect", "new connection and ApiVersions", ("connect",), (REQUESTS_S, CPU_US), REQUESTS_S,
        servers=WARM),
)

# Of a broker just started in an empty directory; kaas alone has targets, Apache stands beside once.
FRESH_TARGETS = {
    "start": at_most(READY_MS, 100),
    "idle memory": at_most(RSS, 30),
    "10,000 idle connections": at_most(RSS, 150),
}
