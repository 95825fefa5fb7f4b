"""occq --cluster for tests: its settings, and its answers beside those from the merged histories."""

import math
import os
import subprocess
import tempfile

import engines
from merge import canonical
from site_ import ERRORS


class Asker:
    def __init__(self, occq, url, password=engines.PASSWORD, **settings):
        self.occq, self.url = occq, url
        self.home = tempfile.TemporaryDirectory(prefix="occ-ask-")
        self.set(password, **settings)

    def set(self, password, **settings):
        directory = os.path.join(self.home.name, "occtrace")
        os.makedirs(directory, exist_ok=True)
        secret = os.path.join(directory, "password")
        with open(secret, "w") as f:
            f.write(password + "\n")
        os.chmod(secret, 0o600)
        settings = {"url": self.url, "password_file": secret, **settings}
        with open(os.path.join(directory, "occtrace.yaml"), "w") as f:
            f.write("cluster:\n" + "".join(f"  {key}: {value}\n" for key, value in settings.items()))

    def run(self, *words, code=0, says="", **more):
        environment = {**os.environ, "XDG_CONFIG_HOME": self.home.name, "TZ": "UTC", **more}
        process = subprocess.run([self.occq, *words], env=environment, capture_output=True, text=True)
        assert process.returncode == code, f"{words}: exit code {process.returncode}, not {code}: {process.stderr}"
        self.said = process.stderr
        assert says in process.stderr, f"{words}: '{says}' is not in: {process.stderr}"
        return process.stdout

    def ask(self, *words, **more):
        return self.run(words[0], "--cluster", self.url, *words[1:], **more)

    def compare(self, merged, *words):
        """The warehouse's answer is that from the merged file."""
        theirs = without_gpu_time(canonical(self.ask(*words, "--json")))
        ours = without_gpu_time(canonical(self.run(words[0], "--db", merged, *words[1:], "--json")))
        assert is_same(theirs, ours), difference(theirs, ours, words)
        return ours


OF_SINGLE_LAUNCHES = {"gpu_time", "findings", "finding", "gpu_time_ratio", "busy_ratio", "used_ratio", "read_ratio", "busy_is_maximum",
                      "busy_is_minimum"}


def without_gpu_time(answer):
    """The answer without the members that need single launches, which stay on their node."""
    if isinstance(answer, dict):
        return {key: without_gpu_time(value) for key, value in answer.items() if key not in OF_SINGLE_LAUNCHES}
    return [without_gpu_time(value) for value in answer] if isinstance(answer, list) else answer


def is_same(theirs, ours):
    """To a unit of the last of the digits that canonical() leaves: what lies on a boundary is rounded up here, down there."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return theirs.keys() == ours.keys() and all((is_error if is_made_of_errors(str(k)) else is_same)(theirs[k], ours[k]) for k in theirs)
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(is_same, theirs, ours))
    if isinstance(theirs, float) and isinstance(ours, (float, int)) or isinstance(ours, float) and isinstance(theirs, int):  # 2.0 is 2
        return theirs == ours or (ours != 0 and abs(theirs - ours) <= 1.001 * 10.0**(math.floor(math.log10(abs(ours))) - 5))
    return theirs == ours


def is_made_of_errors(key):
    """The loss of unknown cause may be within the error of a measurement: then that error is its bound."""
    return key.endswith("_ci95") or key == "unknown_saves_max_ratio"


def is_error(theirs, ours):
    """The shipper rounds errors up and shares of measured time down: the error that covers launches without a value grows by both."""
    return theirs == ours or (bool(ours) and 0.9999 <= theirs / ours <= (ERRORS[1] + 1 / 16) * 1.0001)


def difference(theirs, ours, where):
    if isinstance(theirs, dict) and isinstance(ours, dict) and theirs.keys() == ours.keys():
        return next(difference(theirs[k], ours[k], (*where, k)) for k in theirs if not is_same({k: theirs[k]}, {k: ours[k]}))
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        return next(difference(a, b, (*where, i)) for i, (a, b) in enumerate(zip(theirs, ours)) if not is_same(a, b))
    return f"{where}: the warehouse has {str(theirs)[:500]}, the histories {str(ours)[:500]}"
