"""For all tests of the repository."""

import contextlib
import signal

from hypothesis import settings

# Without deadlines, since a busy machine is not a bug.
settings.register_profile("repository", deadline=None)
settings.load_profile("repository")

# A shell starts background jobs with SIGINT ignored, and programs under test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)
