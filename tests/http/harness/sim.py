# SPDX-License-Identifier: Apache-2.0
"""The simulated provider: tests/sim/aigw-sim, started on a free port."""
import http.client
import json
import pathlib
import re
import ssl
import subprocess
import tempfile

from . import paths
from .upstream import wait_for

KEY = "sk-simulated-upstream"


class Sim:
    def __init__(self, *options):
        self.tls = "--tls" in options
        self.folder = tempfile.TemporaryDirectory(prefix="aigw-sim-")
        self.ledger_path = pathlib.Path(self.folder.name) / "ledger"
        self.process = subprocess.Popen(
            [str(paths.SIM), "--port", "0", "--key", KEY,
             "--ledger", str(self.ledger_path), "--first-byte-ms", "0",
             "--rate", "0", *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        said = self.process.stdout.readline()
        found = re.match(r"listening on .*:(\d+)$", said)
        assert found, f"aigw-sim said {said!r}"
        self.port = int(found[1])
        self.offset = 0

    def stop(self):
        self.process.terminate()
        self.process.wait(5)
        self.process.stdout.close()
        self.folder.cleanup()

    def stats(self):
        """The simulator's own counters."""
        if self.tls:
            link = http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=5,
                context=ssl._create_unverified_context())
        else:
            link = http.client.HTTPConnection("127.0.0.1", self.port,
                                              timeout=5)
        link.request("GET", "/sim/stats")
        found = json.loads(link.getresponse().read())
        link.close()
        return found

    def mark(self):
        """What the ledger holds by now belongs to earlier tests. A line is
        written after the answer, so what they began is waited for."""
        begun = self.stats()["requests"]
        wait_for(lambda: len(self._lines()) >= begun, 5,
                 lambda: f"{len(self._lines())} of {begun} requests ended")
        self.offset = len(self._lines())

    def _lines(self):
        try:
            text = self.ledger_path.read_text()
        except FileNotFoundError:
            return []
        return [line for line in text.splitlines(keepends=True)
                if line.endswith("\n")]

    def ledger_now(self):
        return [json.loads(line) for line in self._lines()[self.offset:]]

    def ledger(self, count, timeout=3):
        """Exactly so many entries since mark()."""
        wait_for(lambda: len(self.ledger_now()) >= count, timeout,
                 lambda: f"{len(self.ledger_now())} of {count} ledger entries")
        found = self.ledger_now()
        assert len(found) == count, found
        return found
