"""The driver's side of the line protocol, and what the environment says about the instance."""

import json
import logging
import os
import sys
import threading
import traceback

EUREKA_URL = os.environ["EUREKA_URL"].rstrip("/")
APP = os.environ["APP"]
INSTANCE_ID = os.environ["INSTANCE_ID"]
INSTANCE_PORT = int(os.environ["INSTANCE_PORT"])
HOST_NAME = os.environ["HOST_NAME"]
HOME = "http://%s:%d/" % (HOST_NAME, INSTANCE_PORT)
RENEW_SECS = int(os.environ["RENEW_SECS"])
LEASE_SECS = int(os.environ["LEASE_SECS"])
FETCH_SECS = int(os.environ["FETCH_SECS"])

# Standard output belongs to the answers alone: whatever a client prints there goes to the log.
_answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
logging.basicConfig(stream=sys.stderr, level=logging.INFO)


class Unsupported(Exception):
    """The client has no way to do this; the text says why."""


class Loop:
    """Calls `work` every `seconds` on a thread of its own until stopped; a failure is logged and the next turn tries again."""

    def __init__(self, seconds, work):
        self._seconds = seconds
        self._work = work
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._turn, daemon=True)
        self._thread.start()

    def stop(self):
        """Returns when no call is under way any more."""
        self._stopped.set()
        self._thread.join()

    def _turn(self):
        while not self._stopped.wait(self._seconds):
            try:
                self._work()
            except Exception:
                traceback.print_exc()


def give_up(reason):
    """For a client that cannot be started at all."""
    _answer("error " + reason)
    os._exit(1)


def serve(start, find, status, leave):
    """Runs one client: `start()` registers it, `find(app)` counts instances, `status(word)` and `leave()` do as named."""
    try:
        start()
    except Exception as error:
        _fail(error)
        os._exit(1)
    _answer("registering " + json.dumps({"id": INSTANCE_ID}))
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        try:
            if command == "find":
                _answer("found %d" % find(argument))
            elif command == "status":
                status(argument)
                _answer("ok")
            elif command == "leave":
                break
            else:
                raise ValueError("no command " + command)
        except Unsupported as reason:
            _answer("unsupported %s" % reason)
        except Exception as error:
            _fail(error)
    try:
        leave()
        _answer("left")
    except Exception as error:
        _fail(error)
        os._exit(1)
    # Not sys.exit: a client's own threads and exit hooks must not speak to the server once it has left.
    os._exit(0)


def _fail(error):
    traceback.print_exc()
    _answer("error %s: %s" % (type(error).__name__, " ".join(str(error).split())))


def _answer(line):
    # The runner may have gone away already; leaving is what matters then.
    try:
        print(line, file=_answers, flush=True)
    except BrokenPipeError:
        pass
