"""Java members of consumer groups, one JVM for all of a test: opened, closed, abandoned; and what they tell."""

import subprocess
import threading
import time

import apache


class Members:
    """The process of Members.java. `events` grows: (name, what, words...)."""

    def __init__(self, classes, bootstrap, log):
        self.events = []
        self.fresh = threading.Condition()
        self.errors = open(log, "wb")
        self.process = subprocess.Popen(
            apache.jvm_command("Members", bootstrap, heap="512m", level="ERROR", classes=[classes]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self.fresh:
                self.events.append(tuple(line.rstrip("\n").split("\t")))
                self.fresh.notify_all()

    def _say(self, *words):
        self.process.stdin.write("\t".join(words) + "\n")
        self.process.stdin.flush()

    def open(self, name, **configs):
        """Keywords are configs with _ for the dots."""
        self._say("open", name, *(f"{key.replace('_', '.')}={value}" for key, value in configs.items()))

    def close(self, name):
        self._say("close", name)

    def abandon(self, name):
        self._say("abandon", name)

    def await_that(self, what, holds, seconds=30):
        """Waits until `holds()`, looked at after each event."""
        deadline = time.monotonic() + seconds
        with self.fresh:
            while not holds():
                left = deadline - time.monotonic()
                assert left > 0, f"not in {seconds} s: {what}\n" + "\n".join(map(str, self.events[-60:]))
                self.fresh.wait(left)

    def of(self, name, what, since=0):
        return [event[2:] for event in self.events[since:] if event[:2] == (name, what)]

    def await_event(self, name, what, since=0, seconds=30):
        self.await_that(f"{name} {what}", lambda: self.of(name, what, since), seconds)
        return self.of(name, what, since)[0]

    def assigned(self, name):
        """The partitions that the member has, by what it was told."""
        held = set()
        for who, what, *words in self.events:
            if who == name and what in ("assigned", "revoked", "lost"):
                partitions = set(filter(None, words[0].split(",")))
                held = held | partitions if what == "assigned" else held - partitions
        return held

    def await_shares(self, *shares, seconds=30):
        """Until each of `shares` (name, count) has as many partitions."""
        self.await_that(f"shares {shares}",
                        lambda: all(len(self.assigned(name)) == count for name, count in shares), seconds)

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()
            self.reader.join(10)
            self.errors.close()
