"""The two brokers, each a process of the suite's own."""

import os
import pathlib
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE.parent / folder) for folder in ("conformance", "perf", "python")]

from rabbitmq import RabbitMq  # noqa: E402
from server import Server, binary  # noqa: E402

PLUGINS = ("rabbitmq_sharding", "rabbitmq_consistent_hash_exchange",
           "rabbitmq_recent_history_exchange", "rabbitmq_random_exchange",
           "rabbitmq_event_exchange")
CTL_SECONDS = 30
# rabbitmqctl keeps a core busy while it starts.
CTL = threading.Semaphore(3)


class Reference:
    """Debian's RabbitMQ."""

    kind, title = "rabbitmq", "RabbitMQ"

    def __init__(self, folder: pathlib.Path):
        self._rabbitmq = RabbitMq(folder)
        (folder / "enabled_plugins").write_text(f"[{','.join(PLUGINS)}].\n")
        # How often it looks for a delivery that was not acknowledged in time.
        (folder / "advanced.config").write_text("[{rabbit, [{channel_tick_interval, 200}]}].\n")
        self._rabbitmq._environment["RABBITMQ_ADVANCED_CONFIG_FILE"] = str(
            folder / "advanced.config")
        self.node = self._rabbitmq.node
        self.address = "127.0.0.1", self._rabbitmq.port

    def start(self):
        self._rabbitmq.start()

    def stop(self):
        self._rabbitmq.stop()

    def ctl(self, words) -> tuple[int, str]:
        from rabbitmq import SCRIPTS
        command = [SCRIPTS / "rabbitmqctl", "--node", self.node, *words]
        return run(command, self._rabbitmq._environment)


class Candidate:
    """Leveret."""

    kind, title = "leveret", "Leveret"

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self.node = "leveret@localhost"
        self._server = Server(folder, f"nodename = {self.node}")
        self.address = "127.0.0.1", self._server.port

    def start(self):
        self._server.start()

    def stop(self):
        self._server.__exit__()

    def ctl(self, words) -> tuple[int, str]:
        command = [binary(), "ctl", "--data-dir", self._folder / "data", *words]
        return run(command, {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"})


BROKERS = {broker.kind: broker for broker in (Reference, Candidate)}


def run(command, environment) -> tuple[int, str]:
    """The exit status, and what was written to standard output and error."""
    with CTL:
        done = subprocess.run([str(word) for word in command], env=environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=CTL_SECONDS)
    return done.returncode, done.stdout
