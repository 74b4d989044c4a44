"""The three kinds of memory. What a memory holds is declared once, for the live row and for its versions alike."""

import json
from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.queries import GuardedQuerySet, MemoryQuerySet
from memories.principal import Action, Principal
from memories.values import days_from


class ReadableJSON(DjangoJSONEncoder):
    """JSON with its letters as they are, so that a search in the column finds ö; NaN is no JSON."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"ensure_ascii": False, "allow_nan": False})


class KeptJSONField(models.JSONField):
    """JSON objects as they were sent: PostgreSQL's jsonb keeps neither the order of members nor -0.0 and 1e23."""

    def db_type(self, connection: Any) -> str | None:
        """PostgreSQL's json, which keeps the text."""
        return "json" if connection.vendor == "postgresql" else super().db_type(connection)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:  # noqa: FBT001, FBT002
        """The value as a parameter; on PostgreSQL without a detour over jsonb."""
        if connection.vendor == "postgresql":
            return json.dumps(value, cls=self.encoder)
        return super().get_db_prep_value(value, connection, prepared)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """The value; PostgreSQL's driver has read json already."""
        return value if isinstance(value, dict) else super().from_db_value(value, expression, connection)


class Content(models.Model):
    """What every memory holds, beside the fields of its kind."""

    EXPIRES: ClassVar[bool] = False
    KEY: ClassVar[str] = "id"
    SCOPE: ClassVar[str] = "scope"
    RECORD: ClassVar[str] = "scope_vk"
    TEXTS: ClassVar[tuple[str, ...]]
    typ: ClassVar[str]

    nutzer = models.CharField(_("owner (nutzer)"), max_length=255)
    agent = models.CharField(_("agent"), max_length=255)
    tag_namen = models.JSONField(_("tags"), default=list, encoder=ReadableJSON, blank=True)
    embedding = models.BinaryField(_("embedding"), null=True, blank=True)
    embedding_dimension = models.PositiveIntegerField(_("numbers of the embedding"), null=True, blank=True)
    embedding_profil_hash = models.CharField(_("embedding profile"), max_length=255, null=True, blank=True)
    embedding_veraltet = models.BooleanField(_("embedding is stale"), default=False)
    erstellt_am = models.DateTimeField(_("created"))
    # Waits for a person's approval: agents do not see it, and no search finds it.
    vorgeschlagen = models.BooleanField(_("proposed"), default=False)

    class Meta:
        abstract = True

    def place(self) -> dict[str, str]:
        """Where it belongs, by the names that limits have: owner, agent, scope, record."""
        return {
            "nutzer": self.nutzer,
            "agent": self.agent,
            "scope": getattr(self, self.SCOPE),
            "scope_vk": getattr(self, self.RECORD),
        }

    def allows(self, principal: Principal, action: Action) -> bool:
        """Whether the principal may do this with it."""
        if self.vorgeschlagen and not principal.sees_proposed:
            return False
        place = self.place()
        return any(not reach.outside(**place) for reach in principal.reaching(action, self.typ))

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that the embedding stands for."""
        return tuple(getattr(self, name) for name in self.TEXTS)


class NoteContent(Content):
    """A long-term or short-term memory's own fields."""

    TEXTS = ("kurzbeschreibung", "memory")

    kurzbeschreibung = models.TextField(_("short description"))
    memory = models.TextField(_("memory"))
    scope = models.CharField(_("scope"), max_length=255)
    scope_vk = models.CharField(_("scope record (scope_vk)"), max_length=255, blank=True)

    class Meta:
        abstract = True


class LongtermContent(NoteContent):
    """A long-term memory's fields."""

    typ = "longterm"

    class Meta:
        abstract = True


class ShorttermContent(NoteContent):
    """A short-term memory's fields."""

    EXPIRES = True
    typ = "shortterm"

    gueltig_bis = models.DateTimeField(_("valid until"))

    class Meta:
        abstract = True


class MemoryTyp(models.TextChoices):
    """What a brain memory is about."""

    ARBEIT = "arbeit", _("work")
    ENTSCHEIDUNG = "entscheidung", _("decision")
    ERFAHRUNG = "erfahrung", _("experience")
    AGENT = "agent", _("agent")


class ScopeTyp(models.TextChoices):
    """Where a brain memory holds."""

    GLOBAL = "global", _("global")
    MODUL = "modul", _("module")
    BENUTZER = "benutzer", _("user")
    AGENT = "agent", _("agent")
    ROOM = "room", _("room")
    ELEMENT = "element", _("element")
    SESSION = "session", _("session")


class BrainContent(Content):
    """A brain memory's fields; its scope is `scope_typ`."""

    EXPIRES = True
    SCOPE = "scope_typ"
    RECORD = "scope_id"
    TEXTS = ("titel", "inhalt", "inhalt_json")
    typ = "brain"

    memory_typ = models.CharField(_("type"), max_length=20, choices=MemoryTyp)
    titel = models.TextField(_("title"))
    inhalt = models.TextField(_("content"), blank=True, default="")
    inhalt_json = models.TextField(_("structured fields (JSON)"), blank=True, default="")
    scope_typ = models.CharField(_("scope"), max_length=20, choices=ScopeTyp, default=ScopeTyp.GLOBAL)
    scope_modul = models.CharField(_("scope module"), max_length=255, blank=True, default="")
    scope_id = models.CharField(_("scope record"), max_length=255, blank=True, default="")
    agent_id = models.CharField(_("agent ID"), max_length=255, blank=True, default="")
    room_id = models.CharField(_("room ID"), max_length=255, blank=True, default="")
    session_id = models.CharField(_("session ID"), max_length=255, blank=True, default="")
    quelle_typ = models.CharField(_("source"), max_length=255, blank=True, default="")
    quelle_id = models.CharField(_("source ID"), max_length=255, blank=True, default="")
    relevanz = models.PositiveSmallIntegerField(_("relevance"), default=50)
    gueltig_bis = models.DateTimeField(_("valid until"), null=True, blank=True)

    class Meta:
        abstract = True


class Memory(Content):
    """A live memory. It changes through `memories.services` alone, so that every change has its version."""

    id: int

    version = models.PositiveIntegerField(_("version"), default=1)
    aktualisiert_am = models.DateTimeField(_("last changed"))

    objects: ClassVar[Any] = MemoryQuerySet.as_manager()

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(condition=Q(version__gte=1), name="%(class)s_version_from_one"),
            models.CheckConstraint(
                condition=Q(embedding__isnull=True, embedding_dimension__isnull=True)
                | Q(embedding__isnull=False, embedding_dimension__gte=1),
                name="%(class)s_embedding_has_dimension",
            ),
        ]
        indexes = [
            models.Index(fields=["erstellt_am", "id"], name="%(class)s_created"),
            models.Index(fields=["aktualisiert_am", "id"], name="%(class)s_changed"),
            models.Index(fields=["nutzer", "erstellt_am", "id"], name="%(class)s_nutzer"),
            models.Index(fields=["agent", "erstellt_am", "id"], name="%(class)s_agent"),
            models.Index(fields=["embedding_profil_hash", "embedding_dimension"], name="%(class)s_profil"),
            models.Index(fields=["erstellt_am", "id"], condition=Q(vorgeschlagen=True), name="%(class)s_proposed"),
        ]

    @property
    def kennung(self) -> str:
        """The ID on the wire, such as `longterm_41`."""
        return f"{self.typ}_{self.pk}"

    @staticmethod
    def default_expiry(at: datetime) -> datetime | None:
        """Until when a memory stored at this moment is valid when nobody says; None is for good."""
        del at
        return None

    def save(self, *_args: object, **_options: object) -> None:
        """Refused: a change without its version must not happen."""
        raise TypeError("Memories change through memories.services, so that every change has its version.")

    def delete(self, *_args: object, **_options: object) -> tuple[int, dict[str, int]]:
        """Refused, like `save`."""
        raise TypeError("Memories change through memories.services, so that every change has its version.")


def _index(model: str, *fields: str, name: str) -> models.Index:
    return models.Index(fields=[*fields, "erstellt_am", "id"], name=f"{model}_{name}")


class LongtermMemory(LongtermContent, Memory):
    """Something to remember for good."""

    class Meta(Memory.Meta):
        permissions = [
            ("restore_longtermmemory", _("Can restore long-term memory")),
            ("export_longtermmemory", _("Can export long-term memory")),
        ]
        verbose_name = _("long-term memory")
        verbose_name_plural = _("long-term memories")
        indexes = [*Memory.Meta.indexes, _index("longtermmemory", "scope", "scope_vk", name="scope")]

    def __str__(self) -> str:
        return self.kurzbeschreibung


class ShorttermMemory(ShorttermContent, Memory):
    """Something to remember until `gueltig_bis`."""

    class Meta(Memory.Meta):
        permissions = [
            ("restore_shorttermmemory", _("Can restore short-term memory")),
            ("export_shorttermmemory", _("Can export short-term memory")),
        ]
        verbose_name = _("short-term memory")
        verbose_name_plural = _("short-term memories")
        indexes = [
            *Memory.Meta.indexes,
            _index("shorttermmemory", "scope", "scope_vk", name="scope"),
            models.Index(fields=["gueltig_bis"], name="shorttermmemory_expiry"),
        ]

    def __str__(self) -> str:
        return self.kurzbeschreibung

    @staticmethod
    def default_expiry(at: datetime) -> datetime | None:
        """Short-term memories are valid for BRAIN_SHORTTERM_DAYS."""
        return days_from(at, settings.BRAIN_SHORTTERM_DAYS)


class BrainMemory(BrainContent, Memory):
    """A structured memory: a piece of work, a decision, an experience, or something about an agent."""

    class Meta(Memory.Meta):
        permissions = [
            ("restore_brainmemory", _("Can restore brain memory")),
            ("export_brainmemory", _("Can export brain memory")),
        ]
        verbose_name = _("brain memory")
        verbose_name_plural = _("brain memories")
        constraints = [
            *Memory.Meta.constraints,
            models.CheckConstraint(condition=Q(relevanz__lte=100), name="brainmemory_relevanz_to_100"),
            models.CheckConstraint(condition=Q(memory_typ__in=MemoryTyp.values), name="brainmemory_known_memory_typ"),
            models.CheckConstraint(condition=Q(scope_typ__in=ScopeTyp.values), name="brainmemory_known_scope_typ"),
        ]
        indexes = [
            *Memory.Meta.indexes,
            _index("brainmemory", "scope_typ", "scope_id", name="scope"),
            models.Index(fields=["gueltig_bis"], name="brainmemory_expiry"),
            _index("brainmemory", "session_id", name="session"),
        ]

    def __str__(self) -> str:
        return self.titel


class Aktion(models.TextChoices):
    """What a version came from."""

    ANGELEGT = "angelegt", _("created")
    GEAENDERT = "geaendert", _("changed")
    GELOESCHT = "geloescht", _("deleted")
    WIEDERHERGESTELLT = "wiederhergestellt", _("restored")
    BEFOERDERT = "befoerdert", _("promoted")
    FREIGEGEBEN = "freigegeben", _("approved")
    ZUSAMMENGEFUEHRT = "zusammengefuehrt", _("merged")
    AUFGEGANGEN = "aufgegangen", _("merged into another")


class Version(Content):
    """A memory's state after one change, with who, how, when and why.

    Rows are only ever added; `memories.erasure` alone removes them, all of a memory at once.
    """

    KEY = "memory_id"

    memory_id = models.BigIntegerField(_("memory"))
    version = models.PositiveIntegerField(_("version"))
    aktion = models.CharField(_("action"), max_length=20, choices=Aktion)
    zeitpunkt = models.DateTimeField(_("when"))
    durch_nutzer = models.CharField(_("changed by (nutzer)"), max_length=255)
    durch_agent = models.CharField(_("changed by (agent)"), max_length=255, blank=True)
    tuer = models.CharField(_("door"), max_length=20)
    tool = models.CharField(_("tool"), max_length=64)
    schluessel_id = models.BigIntegerField(_("access key ID"), null=True)
    schluessel = models.CharField(_("access key"), max_length=150, blank=True)
    benutzer_id = models.BigIntegerField(_("person ID"), null=True)
    benutzer = models.CharField(_("person"), max_length=150, blank=True)
    grund = models.TextField(_("reason"), blank=True)
    referenzfelder = KeptJSONField(_("references"), default=dict, encoder=ReadableJSON, blank=True)
    aufruf = models.UUIDField(_("call"))
    verweis = models.CharField(_("other memory"), max_length=600, blank=True)
    # Of an imported version, what its own installation had in tuer, tool, schluessel, benutzer and verweis.
    urspruenglich = models.JSONField(_("as it was at its origin"), null=True, blank=True, encoder=ReadableJSON)

    objects: ClassVar[Any] = GuardedQuerySet.as_manager()

    class Meta:
        abstract = True
        constraints = [
            models.UniqueConstraint(fields=["memory_id", "version"], name="%(class)s_one_per_number"),
            models.CheckConstraint(condition=Q(version__gte=1), name="%(class)s_version_from_one"),
        ]
        indexes = [
            models.Index(fields=["zeitpunkt", "id"], name="%(class)s_when"),
            models.Index(fields=["zeitpunkt", "id"], condition=Q(aktion="geloescht"), name="%(class)s_deleted"),
            models.Index(fields=["aufruf"], name="%(class)s_call"),
        ]

    def __str__(self) -> str:
        return f"{self.kennung} v{self.version}"

    @property
    def kennung(self) -> str:
        """The memory's ID on the wire, such as `longterm_41`."""
        return f"{self.typ}_{self.memory_id}"


class LongtermVersion(LongtermContent, Version):
    """A long-term memory's version."""

    class Meta(Version.Meta):
        verbose_name = _("version of a long-term memory")
        verbose_name_plural = _("history of long-term memories")


class ShorttermVersion(ShorttermContent, Version):
    """A short-term memory's version."""

    class Meta(Version.Meta):
        verbose_name = _("version of a short-term memory")
        verbose_name_plural = _("history of short-term memories")


class BrainVersion(BrainContent, Version):
    """A brain memory's version."""

    class Meta(Version.Meta):
        verbose_name = _("version of a brain memory")
        verbose_name_plural = _("history of brain memories")
