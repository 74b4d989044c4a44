"""The forms of the memories. What a person types comes into the same canonical forms as what an agent sends."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from django import forms
from django.contrib.admin.widgets import AdminTextareaWidget, AdminTextInputWidget
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories import values
from memories.admin.base import ModelForm
from memories.errors import BrainError, TooLarge
from memories.kinds import Kind
from memories.limits import limits

MOST_TAGS = 100  # as the tools' schemas have it

Reader = Callable[[Any, str], Any]

HELP: dict[str, str | Promise] = {
    "kurzbeschreibung": _("What it is about, in one sentence; lists show it."),
    "memory": _("The text itself, kept exactly as written."),
    "titel": _("What it is about, in one sentence; lists show it."),
    "inhalt": _("Free text or a summary, kept exactly as written."),
    "inhalt_json": _("Structured fields as JSON, kept exactly as written; may be empty."),
    "memory_typ": _("What the memory is about."),
    "scope": _("Where the memory holds, such as a module. Cannot be changed later."),
    "scope_vk": _("The record inside the scope; empty means none. Cannot be changed later."),
    "scope_typ": _("Where the memory holds."),
    "nutzer": _("Whose memory it is. Cannot be changed later."),
    "agent": _("The agent it belongs to. Cannot be changed later."),
    "relevanz": _("A whole number from 0 to 100."),
    "gueltig_bis": _("After this moment no search finds it. Empty means the usual number of days from now."),
}


def unified_breaks(text: str) -> str:
    """The text with every line break as a line feed, to compare texts as a browser shows them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


class ExactText(forms.CharField):
    """A text kept byte for byte. Browsers send every line break as CRLF, which alone is no change."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"strip": False})

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether the text differs, line breaks aside."""
        return unified_breaks(initial or "") != unified_breaks(data or "")


class BigText(AdminTextareaWidget):
    """The place for a long text."""

    def __init__(self, attrs: Mapping[str, Any] | None = None) -> None:
        super().__init__({"rows": 12, **(attrs or {})})


class SmallText(AdminTextareaWidget):
    """The place for a short text, which may still have line breaks that an input of one line would drop."""

    def __init__(self, attrs: Mapping[str, Any] | None = None) -> None:
        super().__init__({"rows": 2, **(attrs or {})})


def read_tags(lines: str, feld: str) -> list[str]:
    """The tags of a text that has one a line."""
    names = values.tag_names((line for line in lines.splitlines() if line.strip()), feld)
    if len(names) > MOST_TAGS:
        raise TooLarge(_("At most %(limit)d tags are allowed.") % {"limit": MOST_TAGS}, feld)
    return names


def _filled(name: str) -> Reader:
    return lambda text, feld: values.filled_text(text, feld, getattr(limits(), name))


def _optional_identifier(text: str, feld: str) -> str:
    return values.identifier(text, feld, may_be_empty=True)


def _free_text(text: str, feld: str) -> str:
    return values.limited_text(text, feld, limits().memory)


class MemoryForm(ModelForm):
    """What is common to the three kinds. On the wire and in the database the tags are `tags` and `tag_namen`."""

    # A field named `tags` would be filled from the model; this one is a text of names.
    schlagworte = ExactText(
        label=_("Tags"), required=False, widget=AdminTextareaWidget({"rows": 4}), help_text=_("One tag a line.")
    )
    grund = forms.CharField(
        label=_("Reason"),
        required=False,
        strip=False,
        widget=AdminTextInputWidget,
        help_text=_("Optional; written into the history."),
    )
    geladene_version = forms.IntegerField(widget=forms.HiddenInput)

    READERS: ClassVar[Mapping[str, Reader]] = {
        "schlagworte": read_tags,
        "nutzer": values.identifier,
        "agent": values.identifier,
    }
    HELP: ClassVar[Mapping[str, str | Promise]] = HELP
    COLUMNS: ClassVar[Mapping[str, str]] = {"schlagworte": "tag_namen"}
    faults: ClassVar[Iterable[BrainError]] = ()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.instance.pk is None:
            del self.fields["geladene_version"], self.fields["grund"]
        self.initial.setdefault("schlagworte", "\n".join(self.instance.tag_namen))
        self.initial["geladene_version"] = self.instance.version
        self.stored = {name: getattr(self.instance, name) for name in self.fields if hasattr(self.instance, name)}
        for name in self.HELP.keys() & self.fields.keys():
            self.fields[name].help_text = str(self.HELP[name])
        if "gueltig_bis" in self.fields:
            self.fields["gueltig_bis"].required = False

    def clean(self) -> dict[str, Any]:
        """Every value in canonical form, and what the service found wrong with them."""
        super().clean()
        for name, read in self.READERS.items():
            if name in self.cleaned_data:
                self._read(name, read)
        for fault in self.faults:
            self._refuse(fault, fault.feld)
        return self.cleaned_data

    def _read(self, name: str, read: Reader) -> None:
        value = self.cleaned_data[name]
        if isinstance(self.fields[name], ExactText) and "\r\n" not in (self.stored.get(name) or ""):
            value = unified_breaks(value)
        try:
            self.cleaned_data[name] = read(value, name)
        except BrainError as error:
            for fault in error.faults:
                self._refuse(fault, name)

    def _refuse(self, fault: BrainError, feld: str | None) -> None:
        shown = {column: name for name, column in self.COLUMNS.items()}
        name = (feld or "").partition("[")[0]
        name = shown.get(name, name)
        self.add_error(name if name in self.fields else None, str(fault.meldung))

    def columns(self, kind: Kind) -> dict[str, Any]:
        """The columns that the form fills: of a new memory all, of an old one those that the person changed."""
        live = {column.name for column in kind.memories._meta.concrete_fields}  # noqa: SLF001
        names = self.fields if self.instance.pk is None else self.changed_data
        filled = {self.COLUMNS.get(name, name): self.cleaned_data[name] for name in names}
        return {column: value for column, value in filled.items() if column in live}


class NoteForm(MemoryForm):
    """A long-term or short-term memory."""

    READERS = {
        **MemoryForm.READERS,
        "kurzbeschreibung": _filled("kurzbeschreibung"),
        "memory": _filled("memory"),
        "scope": values.identifier,
        "scope_vk": _optional_identifier,
    }


class BrainForm(MemoryForm):
    """A brain memory."""

    HELP = HELP | {"gueltig_bis": _("After this moment no search finds it. Empty means for good.")}
    READERS = {
        **MemoryForm.READERS,
        "titel": _filled("titel"),
        "inhalt": _free_text,
        "inhalt_json": values.json_text,
        **dict.fromkeys(
            ("scope_modul", "scope_id", "agent_id", "room_id", "session_id", "quelle_typ", "quelle_id"),
            _optional_identifier,
        ),
    }
