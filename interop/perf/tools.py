"""Runs the two load testers, `leveret perf` and RabbitMQ's PerfTest, as processes of a test."""

import json
import os
import subprocess
import time

LEVERET = os.environ["LEVERET_BIN"]
# A load of a second or three that has not ended by then does not end.
DEADLINE = 45

# Short runs: compiling more than a little takes the JVM longer than it saves.
JAVA = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]


def environment():
    """Both testers take options from environment variables: nothing of the caller's may be one."""
    kept = ("PATH", "HOME", "JAVA_HOME", "TMPDIR")
    return {"LANG": "C.UTF-8"} | {name: os.environ[name] for name in kept if name in os.environ}


class Load:
    """A tester under way."""

    def __init__(self, command, result=None):
        self._command = [str(word) for word in command]
        self._result = result
        self.process = subprocess.Popen(
            self._command,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, status=0):
        """Waits for its end, which is to have that exit status."""
        self.out, self.err = self.process.communicate(timeout=DEADLINE)
        assert self.process.returncode == status, f"{self}: {self.process.returncode}"
        return self

    @property
    def document(self):
        """The result that it wrote."""
        return json.loads(self._result.read_text())

    @property
    def runs(self):
        return self.document["runs"]

    @property
    def run(self):
        (run,) = self.runs
        return run

    def one_error(self):
        """The line on standard error, which has to be the only one."""
        (line,) = self.err.splitlines()
        assert line.startswith("leveret perf: "), line
        return line

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def __str__(self):
        out, err = getattr(self, "out", ""), getattr(self, "err", "")
        return f"{' '.join(self._command)}\n{out}\n{err}"


class Loads:
    """Starts testers, and ends those that still run after the test."""

    def __init__(self, folder):
        self._folder = folder
        self._started = []

    def start_perf(self, *options):
        result = self._folder / f"{len(self._started)}.json"
        return self._add(Load([LEVERET, "perf", *options, "--json", result], result))

    def perf(self, *options, status=0):
        return self.start_perf(*options).finish(status)

    def start_perf_test(self, *options):
        classpath = os.environ["PERF_TEST_CLASSPATH"]
        return self._add(Load([*JAVA, "-cp", classpath, "com.rabbitmq.perf.PerfTest", *options]))

    def _add(self, load):
        self._started.append(load)
        return load

    def end(self):
        for load in self._started:
            load.end()


def wait_until(condition, what):
    """Waits until it holds; returns what it returned."""
    deadline = time.monotonic() + DEADLINE
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)
    return value
