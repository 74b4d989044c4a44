"""Write the German catalogues in their one form and compile them, without msgfmt: `python -m tests.messages`."""

from pathlib import Path

import polib

FOLDER = Path(__file__).parent.parent / "locale" / "de" / "LC_MESSAGES"
OURS = FOLDER / "django.po"
# What Django's own catalogues lack; makemessages would drop it from ours.
OF_DJANGO = FOLDER / "of_django.po"
OF_DJANGO_JS = FOLDER / "of_djangojs.po"

# What Django reads: the catalogues that each is made of.
COMPILED = {
    FOLDER / "django.mo": (OURS, OF_DJANGO),
    FOLDER / "djangojs.mo": (OF_DJANGO_JS,),
}

# No dates: the same texts make the same files.
_HEADER = {
    "Project-Id-Version": "Brain",
    "Language": "de",
    "MIME-Version": "1.0",
    "Content-Type": "text/plain; charset=UTF-8",
    "Content-Transfer-Encoding": "8bit",
    "Plural-Forms": "nplurals=2; plural=(n != 1);",
}
_TITLES = {
    OURS: "The German texts of Brain; `make messages` keeps them in step with the sources.",
    OF_DJANGO: "Texts of Django's own that its German catalogue lacks, or says otherwise than Brain (Historie).",
    OF_DJANGO_JS: "Texts of the admin's scripts that Django's German catalogue lacks.",
}


def read(*paths: Path) -> polib.POFile:
    """Catalogues of ours as one, with the header that they always have."""
    catalogue = polib.POFile(wrapwidth=0)
    for path in paths:
        catalogue.extend(polib.pofile(str(path)))
    catalogue.metadata = dict(_HEADER)
    return catalogue


def tidied(path: Path) -> str:
    """The text of a catalogue in its one form."""
    catalogue = read(path)
    catalogue.header = _TITLES[path]
    return str(catalogue)


if __name__ == "__main__":
    for path in _TITLES:
        path.write_text(tidied(path), encoding="utf-8", newline="\n")
    for target, sources in COMPILED.items():
        target.write_bytes(read(*sources).to_binary())
