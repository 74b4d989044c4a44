"""`python -m bench.search [ROWS] [--folder FOLDER]`: what a search costs, beside the bare scans that it rests on.

The memories are made (`bench.corpus`) and loaded through the index that every write keeps. With a folder, or a database
of your own in DATABASE_URL, they stay and are used again. Figures are CPU milliseconds of this process and, on
PostgreSQL on the same machine, of its backend; those of different runs do not compare, since machines are shared.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import django

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("rows", nargs="?", type=int, default=int(os.environ.get("BENCH_ROWS", "100000")))
    parser.add_argument("--folder", type=Path, help="keeps the SQLite database for another run")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="brain-bench-") as temporary:
        folder = (given.folder or Path(temporary)).resolve()
        folder.mkdir(exist_ok=True)
        # One thread for the bare scans too: what they cost is compared with what a search costs.
        os.environ.update(BRAIN_DATA=str(folder), BRAIN_SECRET_KEY="bench", OPENBLAS_NUM_THREADS="1")
        os.environ["DJANGO_SETTINGS_MODULE"] = "bench.settings"
        django.setup()
        from bench.searching import measure

        sys.exit(measure(given.rows))
