"""Actions on many memories at once: asked before, done in steps with their progress, told row by row."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.contrib.admin.widgets import AdminTextareaWidget
from django.core import signing
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Max, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import truncatechars
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories import services, values
from memories.admin.base import BrainAdmin, ReasonForm, may, origin_of
from memories.admin.forms import MOST_TAGS, ExactText, read_tags
from memories.admin.history import url_of
from memories.errors import BrainError, Conflict, Invalid, NotAllowed, NotFound, TooLarge
from memories.kinds import BRAIN, KINDS, SHORTTERM, Kind, parse_id
from memories.models import Memory
from memories.models.access import principal_of
from memories.principal import Action, Origin
from memories.values import tag_key

if TYPE_CHECKING:
    from django.urls import URLPattern

MOST_IN_BULK = 2_000
STEP = 100
_SHOWN = 20
_LONGEST_EXTENSION = 3_650  # days
_SALT = "memories.admin.bulk"

Outcomes = dict[int, services.Outcome]


class TagsForm(ReasonForm):
    """Some tags."""

    field_order = ("schlagworte", "grund")
    schlagworte = ExactText(
        label=gettext_lazy("Tags"),
        widget=AdminTextareaWidget({"rows": 3}),
        help_text=gettext_lazy("One tag a line."),
    )

    def clean_schlagworte(self) -> list[str]:
        """The names in canonical form."""
        try:
            names = read_tags(self.cleaned_data["schlagworte"], "schlagworte")
        except BrainError as error:
            raise ValidationError([str(fault.meldung) for fault in error.faults]) from error
        if not names:
            raise ValidationError(_("Name a tag."))
        return names


class ExpiryForm(ReasonForm):
    """A moment, or how much longer."""

    field_order = ("gueltig_bis", "tage", "grund")
    gueltig_bis = forms.DateTimeField(
        label=gettext_lazy("Valid until"),
        required=False,
        widget=forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text=gettext_lazy("Either this moment for all of them …"),
    )
    tage = forms.IntegerField(
        label=gettext_lazy("Days longer"),
        required=False,
        min_value=1,
        max_value=_LONGEST_EXTENSION,
        help_text=gettext_lazy("… or so many days longer than each is valid now; from today on when that is over."),
    )

    def clean(self) -> dict[str, Any]:
        """One of the two."""
        found: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and (found["gueltig_bis"] is None) == (found["tage"] is None):
            raise ValidationError(_("Fill in one of the two: the moment, or the days."))
        return found


Run = Callable[[Kind, Sequence[int], Mapping[str, Any], Origin], Outcomes]


@dataclass(frozen=True, slots=True)
class Bulk:
    """One action: what it is called, what it needs, and what carries it out. `where` is the list that offers it.

    One with `only` is offered while the list is filtered by that parameter. `done` is told of a row in place of its new
    version.
    """

    name: str
    title: Promise
    explanation: Promise
    action: Action
    run: Run
    form: type[ReasonForm] = ReasonForm
    kinds: Sequence[Kind] = KINDS
    where: str = "changelist"
    only: str = ""
    done: Promise | None = None


def _add_tags(kind: Kind, keys: Sequence[int], data: Mapping[str, Any], origin: Origin) -> Outcomes:
    def united(row: Memory) -> Mapping[str, Any]:
        held = {tag_key(name) for name in row.tag_namen}
        names = [*row.tag_namen, *(name for name in data["schlagworte"] if tag_key(name) not in held)]
        if len(names) > MOST_TAGS:
            raise TooLarge(_("At most %(limit)d tags are allowed.") % {"limit": MOST_TAGS}, "tags")
        return {"tag_namen": names}

    return _changed(kind, keys, origin, "tag_namen", united)


def _remove_tags(kind: Kind, keys: Sequence[int], data: Mapping[str, Any], origin: Origin) -> Outcomes:
    unwanted = {tag_key(name) for name in data["schlagworte"]}
    return _changed(
        kind,
        keys,
        origin,
        "tag_namen",
        lambda row: {"tag_namen": [name for name in row.tag_namen if tag_key(name) not in unwanted]},
    )


def _set_expiry(kind: Kind, keys: Sequence[int], data: Mapping[str, Any], origin: Origin) -> Outcomes:
    def later(row: Any) -> Mapping[str, Any]:
        moment: datetime | None = data["gueltig_bis"]
        if moment is None:
            if row.gueltig_bis is None:
                raise Invalid(_("It is valid for good; there is nothing to extend."), "gueltig_bis")
            moment = values.days_from(max(row.gueltig_bis, timezone.now()), data["tage"])
        return {"gueltig_bis": moment}

    return _changed(kind, keys, origin, "gueltig_bis", later)


def _changed(
    kind: Kind, keys: Sequence[int], origin: Origin, column: str, wanted: Callable[[Any], Mapping[str, Any]]
) -> Outcomes:
    """Change one column of each by what it holds now; what was changed by others meanwhile is read once more."""
    outcomes: Outcomes = {}
    for _turn in range(2):
        left = [key for key in keys if isinstance(outcomes.get(key), Conflict)] if outcomes else keys
        rows = kind.memories.objects.visible_to(origin.principal, Action.WRITE, among=left)
        changes = []
        for row in rows.only("pk", "version", column):
            try:
                changes.append(services.Change(row.pk, wanted(row), row.version))
            except BrainError as fault:
                outcomes[row.pk] = fault
        done = services.update(kind, changes, origin) if changes else []
        outcomes |= {change.key: outcome for change, outcome in zip(changes, done, strict=True)}
    return outcomes


def _promote(_kind: Kind, keys: Sequence[int], _data: Mapping[str, Any], origin: Origin) -> Outcomes:
    return dict(zip(keys, services.promote(keys, origin), strict=True))


def _approve(kind: Kind, keys: Sequence[int], _data: Mapping[str, Any], origin: Origin) -> Outcomes:
    return dict(zip(keys, services.approve(kind, dict.fromkeys(keys), origin), strict=True))


def _reject(kind: Kind, keys: Sequence[int], _data: Mapping[str, Any], origin: Origin) -> Outcomes:
    return dict(zip(keys, services.reject(kind, dict.fromkeys(keys), origin), strict=True))


def _restore(kind: Kind, keys: Sequence[int], _data: Mapping[str, Any], origin: Origin) -> Outcomes:
    """To the newest version, which is what a deleted memory held last."""
    versions = kind.versions.objects.visible_to(origin.principal, Action.RESTORE, among=keys)
    newest = versions.order_by().values("memory_id").annotate(newest=Max("version")).values_list("memory_id", "newest")
    return {key: services.restore(kind, key, number, origin) for key, number in newest}


BULKS = (
    Bulk(
        "add_tags",
        gettext_lazy("Add tags…"),
        gettext_lazy("The tags are added to those that each memory has."),
        Action.WRITE,
        _add_tags,
        TagsForm,
    ),
    Bulk(
        "remove_tags",
        gettext_lazy("Remove tags…"),
        gettext_lazy("The tags are taken from each memory that has them; its others stay."),
        Action.WRITE,
        _remove_tags,
        TagsForm,
    ),
    Bulk(
        "set_expiry",
        gettext_lazy("Set or extend the validity…"),
        gettext_lazy("After its validity a memory is found by no search of agents."),
        Action.WRITE,
        _set_expiry,
        ExpiryForm,
        kinds=(SHORTTERM, BRAIN),
    ),
    Bulk(
        "promote",
        gettext_lazy("Promote to long-term memories…"),
        gettext_lazy("Each becomes a long-term memory with a new ID; the history of both names the other."),
        Action.WRITE,
        _promote,
        kinds=(SHORTTERM,),
    ),
    Bulk(
        "approve",
        gettext_lazy("Approve…"),
        gettext_lazy(
            "From then on agents see them, and searches find them. Those that read like instructions to a model are "
            "left as they are: each of them is looked at and approved by itself."
        ),
        Action.WRITE,
        _approve,
        only="vorgeschlagen",
        done=gettext_lazy("Approved."),
    ),
    Bulk(
        "reject",
        gettext_lazy("Reject…"),
        gettext_lazy("They go into the trash; from there they come back as proposals."),
        Action.WRITE,
        _reject,
        only="vorgeschlagen",
        done=gettext_lazy("Rejected; it lies in the trash."),
    ),
    Bulk(
        "restore",
        gettext_lazy("Restore…"),
        gettext_lazy("Each comes back with what it held last, as a new version."),
        Action.RESTORE,
        _restore,
        where="trash",
    ),
)


def offered(request: HttpRequest, kind: Kind, where: str) -> dict[str, Any]:
    """The actions that a list offers this person, as Django's admin wants them."""
    return {
        bulk.name: (_asking(bulk), bulk.name, bulk.title)
        for bulk in BULKS
        if bulk.where == where and kind in bulk.kinds and may(request, bulk.action, kind)
        if not bulk.only or bulk.only in request.GET
    }


def _asking(bulk: Bulk) -> Callable[..., HttpResponse | None]:
    def ask(model_admin: Any, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        key = "memory_id" if bulk.where == "trash" else "pk"
        keys = list(queryset.values_list(key, flat=True)[: MOST_IN_BULK + 1])
        if len(keys) > MOST_IN_BULK:
            told = _("At most %(limit)d memories can be changed at once. Narrow the list by filters.")
            model_admin.message_user(request, told % {"limit": MOST_IN_BULK}, messages.ERROR)
            return None
        return page(model_admin, request, bulk, keys, bulk.form(), back=request.GET.urlencode())

    return ask


def page(
    model_admin: Any, request: HttpRequest, bulk: Bulk, keys: Sequence[int], form: forms.Form, *, back: str
) -> HttpResponse:
    """Asks for what the action needs, and whether it is meant."""
    kind = model_admin.kind
    rows = kind.versions if bulk.where == "trash" else kind.memories
    key = "memory_id" if bulk.where == "trash" else "pk"
    seen = rows.objects.visible_to(principal_of(request.user)).filter(**{f"{key}__in": keys[:_SHOWN]})
    column = kind.memories.TEXTS[0]
    titles = dict(seen.order_by("pk").values_list(key, column))
    return _answer(
        model_admin,
        request,
        bulk,
        "bulk",
        form=form,
        keys=",".join(map(str, keys)),
        count=len(keys),
        rows=[f"{kind.typ}_{key}: {truncatechars(titles[key], 80)}" for key in keys[:_SHOWN] if key in titles],
        more=max(len(keys) - _SHOWN, 0),
        back=back,
        told=request.POST.get("told", ""),
    )


def _answer(model_admin: Any, request: HttpRequest, bulk: Bulk, template: str, **context: Any) -> TemplateResponse:
    kind = model_admin.kind
    back = context.get("back", "")
    common = {
        **model_admin.admin_site.each_context(request),
        "title": str(bulk.title).rstrip("…"),
        "opts": kind.memories._meta,  # noqa: SLF001 - Django's own public-by-custom API
        "action_url": url_of("bulk", kind, bulk.name),
        "back_url": url_of(bulk.where, kind) + (f"?{back}" if back else ""),
        "explanation": bulk.explanation,
    }
    return TemplateResponse(request, f"admin/memories/{template}.html", common | context)


@dataclass(frozen=True, slots=True)
class Told:
    """What came of one memory, for people."""

    kennung: str
    url: str
    good: bool
    text: str


class BulkAdmin(BrainAdmin):
    """The pages that do it."""

    kind: Kind

    def get_urls(self) -> "list[URLPattern]":
        """One for each action."""
        name = f"memories_{self.kind.typ}memory_bulk"
        return [path("bulk/<str:name>/", self.admin_site.admin_view(self.bulk_view), name=name), *super().get_urls()]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Those of the list, and these."""
        return super().get_actions(request) | offered(request, self.kind, "changelist")

    def bulk_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Asks again when something is wrong; otherwise a step, until nothing is left."""
        if not may(request, Action.READ, self.kind):
            raise PermissionDenied
        bulk = next((each for each in BULKS if each.name == name and self.kind in each.kinds), None)
        if bulk is None:
            raise Http404
        if not may(request, bulk.action, self.kind):
            raise PermissionDenied
        keys = self._posted_keys(request)
        if not keys or len(keys) > MOST_IN_BULK:
            return HttpResponseRedirect(url_of(bulk.where, self.kind))
        back, form = request.POST.get("back", ""), bulk.form(request.POST)
        if not form.is_valid():
            return page(self, request, bulk, keys, form, back=back)
        try:
            told = self._step(bulk, keys[:STEP], form, origin_of(request))
        except BrainError as fault:
            form.add_error("grund" if fault.feld == "grund" else None, str(fault.meldung))
            return page(self, request, bulk, keys, form, back=back)
        told = [*_told_before(request.POST.get("told", "")), *told]
        left = keys[STEP:]
        return _answer(
            self,
            request,
            bulk,
            "bulk_result",
            told=told,
            good=sum(each.good for each in told),
            bad=sum(not each.good for each in told),
            done=len(told),
            total=len(told) + len(left),
            sent=_to_send_again(request) if left else {},
            keys=",".join(map(str, left)),
            told_so_far=signing.dumps([[t.kennung, t.good, t.text] for t in told], salt=_SALT, compress=True),
            back=back,
        )

    def _posted_keys(self, request: HttpRequest) -> list[int]:
        typed = request.POST.get("keys", "")
        found = [_key_of(self.kind, part) for part in typed.split(",")] if typed else []
        return list(dict.fromkeys(found)) if all(found) else []

    def _step(self, bulk: Bulk, keys: Sequence[int], form: forms.Form, origin: Origin) -> list[Told]:
        outcomes = bulk.run(self.kind, keys, form.cleaned_data, origin)
        rows = self.kind.versions if bulk.where == "trash" else self.kind.memories
        key = "memory_id" if bulk.where == "trash" else "pk"
        seen = set(rows.objects.visible_to(origin.principal).filter(**{f"{key}__in": keys}).values_list(key, flat=True))
        return [self._told(bulk, key, outcomes.get(key) or _refused(key in seen)) for key in keys]

    def _told(self, bulk: Bulk, key: int, outcome: services.Outcome) -> Told:
        kennung = f"{self.kind.typ}_{key}"
        if isinstance(outcome, BrainError):
            return Told(kennung, _history(kennung), good=False, text=str(outcome.meldung))
        if not outcome.changed:
            return Told(kennung, _history(kennung), good=True, text=_("Already so; no new version."))
        if outcome.verweis:
            return Told(kennung, _history(kennung), good=True, text=_("Now %(id)s.") % {"id": outcome.kennung})
        text = str(bulk.done or _("Stored as version %(number)d.") % {"number": outcome.version})
        return Told(kennung, _history(kennung), good=True, text=text)


def _key_of(kind: Kind, part: str) -> int:
    try:
        return parse_id(f"{kind.typ}_{part}", "ID", only=kind)[1]
    except BrainError:
        return 0


def _history(kennung: str) -> str:
    kind, key = parse_id(kennung, "ID")
    return url_of("history", kind, key)


def _refused(seen: bool) -> BrainError:  # noqa: FBT001
    if seen:
        return NotAllowed(_("You may not do this with this memory."))
    return NotFound(_("There is no memory of this ID."), "ID")


def _told_before(text: str) -> Iterable[Told]:
    """What earlier steps told; nothing for what no step wrote."""
    try:
        told = signing.loads(text, salt=_SALT) if text else []
    except signing.BadSignature:
        told = []
    return [Told(kennung, _history(kennung), good, what) for kennung, good, what in told]


def _to_send_again(request: HttpRequest) -> dict[str, Any]:
    """What the next step needs of what was filled in."""
    apart = {"keys", "told", "back", "csrfmiddlewaretoken"}
    return {name: value for name, value in request.POST.items() if name not in apart}
