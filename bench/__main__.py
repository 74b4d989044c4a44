"""`python -m bench`: set up a throw-away database, measure, print. All figures are CPU time of this process."""

import os
import sys
import tempfile

import django

if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="brain-bench-") as folder:
        os.environ.update(BRAIN_DATA=folder, BRAIN_SECRET_KEY="bench", DJANGO_SETTINGS_MODULE="bench.settings")
        django.setup()
        from bench.calls import main

        sys.exit(main())
