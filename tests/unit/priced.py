"""A home directory with prices of GPU-hours, for tests of the bill."""
import os


def put_settings(directory, text):
    os.makedirs(os.path.join(directory, "occtrace"), exist_ok=True)
    with open(os.path.join(directory, "occtrace", "occq.yaml"), "w", encoding="utf-8") as settings:
        settings.write(text)


def environment(directory, zone="UTC"):
    """The environment of a user with this home, who has chosen no history."""
    chosen = dict(os.environ, HOME=directory, XDG_CONFIG_HOME=directory, XDG_STATE_HOME=directory, TZ=zone)
    for name in ("OCCTRACE_DB", "OCCTRACE_CLUSTER"):
        chosen.pop(name, None)
    return chosen
