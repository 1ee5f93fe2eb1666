"""franz-go's own tests against a broker: its packages kgo (groups, transactions, admin) and kadm.

They run from the package's directory in the module cache, as one of them reads a source file. All that
Apache 4.4 passes must pass; the tests that skip themselves are named here, so that none does so unseen.
"""

import collections
import json
import os
import subprocess

import pytest

# At 50,000 records a run on Apache takes two minutes, most of which is the tests' own waiting.
RECORDS = 2_000
LONG_RECORDS = 100_000
BUILD_SECONDS = 900

# Why a test of kgo skips itself.
SKIPPED = {
    "no SASL listener": {"TestSCRAMAuth", "TestSCRAMAuthBadCredentials", "TestOAuthAuth"},
    "no share groups": {"TestShareGroup", "TestShareGroupETL", "TestShareGroupAckOnClose",
                        "TestShareGroupOffsetsAdmin", "TestConsumeRegexShareSkipsInternal"},
    "no KIP-848": {"Test848RegexBrokerResolves", "TestGroupSimple/848"} | {
        f"{test}/{protocol}" for test in ("TestGroupETL", "TestTxnEtl")
        for protocol in ("range/848", "sticky/848", "sticky/848/static")},
    "no Produce 2": {"TestIssueProduceBrokerTooOldFailsRecords"},
}

pytestmark = pytest.mark.timeout(BUILD_SECONDS + 900)


def go(*arguments, **more):
    done = subprocess.run(["go", *arguments], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def package(module, folder=""):
    """A directory in the module cache, fetched if it is not there."""
    return json.loads(go("mod", "download", "-json", module, timeout=BUILD_SECONDS, cwd="/"))["Dir"] + folder


def run_tests(directory, binary, seconds, environment):
    """Outcomes by test name, and what each that failed printed."""
    go("test", "-c", "-o", binary, ".", timeout=BUILD_SECONDS, cwd=directory)
    command = ["go", "tool", "test2json", binary, "-test.v=test2json", f"-test.timeout={seconds}s"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + 30,
                          cwd=directory, env=os.environ | environment)
    outcomes, output = {}, collections.defaultdict(list)
    for line in done.stdout.splitlines():
        event = json.loads(line)
        name = event.get("Test", "")
        output[name].append(event.get("Output", ""))
        if event["Action"] in ("pass", "fail", "skip"):
            outcomes[name] = event["Action"]
    failed = {name: "".join(output[name])[-4000:] for name, outcome in outcomes.items()
              if outcome == "fail" and name}
    assert not failed and done.returncode == 0, "\n".join(
        [f"{len(failed)} failed: {', '.join(failed)}", *failed.values(), "".join(output[""])[-2000:],
         done.stderr[-4000:]])
    return outcomes


def test_kgo(kaas_factory, request, tmp_path):
    records = LONG_RECORDS if request.config.getoption("--long") else RECORDS
    broker = kaas_factory({"group.initial.rebalance.delay.ms": "0"})
    outcomes = run_tests(package("github.com/twmb/franz-go@v1.22.3", "/pkg/kgo"), tmp_path / "kgo.test", 900, {
        "KGO_SEEDS": broker.bootstrap, "KGO_TEST_RF": "1", "KGO_TEST_RECORDS": str(records),
        "KGO_LOG_LEVEL": "none"})
    skipped = {name for name, outcome in outcomes.items() if outcome == "skip"}
    assert skipped <= set().union(*SKIPPED.values())
    assert len([name for name in outcomes if name and "/" not in name]) == 156


def test_kadm(tmp_path):
    """None of these asks a broker in this version: they are run so that one that will is not missed."""
    outcomes = run_tests(package("github.com/twmb/franz-go/pkg/kadm@v1.20.0"), tmp_path / "kadm.test", 120, {})
    assert set(outcomes.values()) == {"pass"}
