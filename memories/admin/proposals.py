"""The queue of proposals: each with what is nearest to it, to be approved, edited or rejected."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import truncatechars
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories import proposals, services
from memories.admin.base import ReasonForm, may, origin_of
from memories.admin.history import url_of
from memories.admin.reading import told_why
from memories.errors import BrainError
from memories.figures import proposals_of
from memories.kinds import KINDS, Kind, parse_id
from memories.models.access import principal_of
from memories.principal import Action
from memories.proposals import Proposal
from memories.site import Page
from memories.suspicion import Passage, passages_of

A_PAGE = 10
_SHOWN = 2_000  # characters of a proposal's text
_COMPARED = 240  # of one that is near to it
FILTER = "vorgeschlagen"
_SUSPICIOUS = {"verdaechtig": "ja"}


@dataclass(frozen=True, slots=True)
class Near:
    """A memory that is near to a proposal: where it is, its texts, and what both have in common."""

    kennung: str
    url: str
    title: str
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Card:
    """A proposal as it is shown."""

    proposal: Proposal
    title: str
    text: str
    place: str
    near: Sequence[Near]
    passages: Sequence[Passage]
    url: str
    read_url: str
    may_decide: bool


def queue_view(request: HttpRequest) -> HttpResponse:
    """The proposals of all kinds, newest first, those that read like instructions, or one; what was decided on one."""
    if not _is_open_to(request):
        raise PermissionDenied
    address = reverse("admin:memories_proposals")
    if request.method == "POST":
        return _decide(request) or HttpResponseRedirect(_back(request))
    principal = principal_of(request.user)
    try:
        found, weiter = _wanted(request)
    except BrainError as fault:
        messages.error(request, str(fault.meldung))
        return HttpResponseRedirect(address)
    context = {
        **admin.site.each_context(request),
        "title": QUEUE.title,
        "explanation": _(
            "What keys under review have stored. No agent sees it and no search finds it until somebody approves it; "
            "what is rejected lies in the trash. Editing a proposal does not approve it."
        ),
        "cards": [_card(request, proposal) for proposal in found],
        "weiter": weiter,
        "first_page": not request.GET.keys() - _SUSPICIOUS.keys(),
        "suspicious_alone": bool(_filtered(request)),
        "suspicious_query": urlencode(_SUSPICIOUS),
        "looked_through": proposals.LOOKED_THROUGH,
        "address": address,
        "post_url": request.get_full_path(),
        "lists": [
            (kind.memories._meta.verbose_name_plural, number, f"{url_of('changelist', kind)}?{FILTER}=ja")  # noqa: SLF001
            for kind in KINDS
            if (number := proposals_of(kind, principal)).number
        ],
        "reason": ReasonForm.base_fields["grund"].label,
    }
    return TemplateResponse(request, "admin/memories/proposals.html", context)


def _wanted(request: HttpRequest) -> tuple[Sequence[Proposal], str | None]:
    """A page of the queue and its cursor, or the one that the address names. Raises a BrainError for what is none."""
    principal = principal_of(request.user)
    if "id" in request.GET:
        kind, key = parse_id(request.GET["id"], "id")
        return proposals.told(proposals.waiting(kind, principal).filter(pk=key), principal), None
    page = proposals.queue(A_PAGE, request.GET.get("weiter"), principal, suspicious=bool(_filtered(request)))
    return page.rows, page.weiter


def _filtered(request: HttpRequest) -> dict[str, str]:
    """What of the address says that only those that read like instructions are wanted."""
    return {name: wanted for name, wanted in _SUSPICIOUS.items() if request.GET.get(name) == wanted}


def _back(request: HttpRequest) -> str:
    """Where one was in the queue; from one proposal, its beginning."""
    place = "" if "id" in request.GET else request.GET.urlencode()
    return reverse("admin:memories_proposals") + (f"?{place}" if place else "")


def _card(request: HttpRequest, proposal: Proposal) -> Card:
    kind, memory = proposal.kind, proposal.memory
    title, *texts = memory.texts
    place = memory.place()
    return Card(
        proposal,
        title=title,
        text=truncatechars("\n".join(filter(None, texts)), _SHOWN),
        place=" · ".join(
            filter(None, (f"{place['scope']} {place['scope_vk']}".strip(), place["nutzer"], place["agent"]))
        ),
        near=[
            Near(
                each.memory.kennung,
                url_of("change", each.kind, each.memory.pk),
                truncatechars(each.memory.texts[0], _COMPARED),
                truncatechars(each.memory.texts[1], _COMPARED),
                told_why(each),
            )
            for each in proposal.nearest
        ],
        passages=passages_of(memory),
        url=url_of("change", kind, memory.pk),
        read_url=url_of("read", kind, memory.pk),
        may_decide=may(request, Action.WRITE, kind, memory),
    )


def _is_open_to(request: HttpRequest) -> bool:
    """Whoever may view some kind."""
    return any(may(request, Action.READ, kind) for kind in KINDS)


def _decide(request: HttpRequest) -> HttpResponse | None:
    """Carry out what was decided on a proposal, and tell what came of it; or the page that asks whether it is meant."""
    what, version = request.POST.get("entscheidung", ""), request.POST.get("version", "")
    try:
        kind, key = parse_id(request.POST.get("kennung", ""), "kennung")
        if not may(request, Action.WRITE, kind):
            raise PermissionDenied
        if what not in {"approve", "reject"} or not (version.isascii() and version.isdecimal()):
            return None
        outcome = _outcome(request, what, kind, {key: int(version)})
        if isinstance(outcome, proposals.Suspicious):
            return _confirmation(request, kind, key)
    except BrainError as fault:
        outcome = fault
    if isinstance(outcome, BrainError):
        messages.error(request, str(outcome.meldung))
    else:
        _tell(request, kind, outcome, approved=what == "approve")
    return None


def _outcome(request: HttpRequest, what: str, kind: Kind, seen: proposals.Seen) -> services.Outcome:
    if what == "reject":
        return services.reject(kind, seen, origin_of(request))[0]
    return services.approve(kind, seen, origin_of(request), knowing="trotzdem" in request.POST)[0]


def _confirmation(request: HttpRequest, kind: Kind, key: int) -> HttpResponse | None:
    """Asks whether a proposal that reads like instructions is to be approved, and says what it reads like."""
    found = proposals.told(
        proposals.waiting(kind, principal_of(request.user)).filter(pk=key), principal_of(request.user)
    )
    context = {
        **admin.site.each_context(request),
        "title": _("Approve %(id)s?") % {"id": f"{kind.typ}_{key}"},
        "queue": QUEUE.title,
        "address": reverse("admin:memories_proposals"),
        "cards": [_card(request, proposal) for proposal in found],
        "version": request.POST["version"],
        "grund": request.POST.get("grund", ""),
        "reason": ReasonForm.base_fields["grund"].label,
        "post_url": request.get_full_path(),
        "back_url": _back(request),
    }
    return TemplateResponse(request, "admin/memories/proposal_confirmation.html", context) if found else None


def _tell(request: HttpRequest, kind: Kind, done: services.Done, *, approved: bool) -> None:
    told = _("{} is approved.") if approved else _("{} is rejected and lies in the trash.")
    address = url_of("change" if approved else "history", kind, done.key)
    messages.success(request, format_html(told, format_html('<a href="{}">{}</a>', address, done.kennung)))


QUEUE = Page("proposals", gettext_lazy("Proposals"), queue_view, _is_open_to)


def marked(row: Any, text: str) -> str:
    """A text of a list, with a mark when the memory or version is proposed."""
    return format_html('<span class="proposed">{}</span> {}', _("proposed"), text) if row.vorgeschlagen else text
