"""The environment of a test run, set before any settings are read: a data folder of its own and no other setting."""

import os
import tempfile

for name in [name for name in os.environ if name.startswith("BRAIN_") and not name.startswith("BRAIN_TEST_")]:
    del os.environ[name]
os.environ["BRAIN_DATA"] = tempfile.mkdtemp(prefix="brain-tests-")
os.environ["BRAIN_SECRET_KEY"] = "a secret for tests alone"
