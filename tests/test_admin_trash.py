"""The trash in the admin: what was deleted and is not there, who did it when and why, and the way back."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memories.kinds import KINDS, LONGTERM, SHORTTERM, Kind
from memories.models import LongtermMemory, LongtermVersion
from memories.principal import SYSTEM, Origin
from memories.services import delete, promote, restore
from tests.admincast import person, store, url

pytestmark = pytest.mark.django_db
OWN: dict[str, Any] = {"memory_typ": "arbeit", "titel": "T", "gueltig_bis": None}


@pytest.fixture
def anna() -> Client:
    """Administrator."""
    return person("anna", superuser=True)


def gone(grund: str = "", who: str = "anna", kind: Kind = LONGTERM, **values: Any) -> int:
    """The key of a memory that was deleted."""
    key = store(kind, **OWN | values)
    delete(kind, [key], Origin(SYSTEM, who, "planer", "rest", "test", grund=grund))
    return key


def shown(client: Client, kind: Kind = LONGTERM, **parameters: str) -> list[tuple[int, int]]:
    """The memories in the trash, by the versions that deleted them."""
    response = client.get(url("trash", kind=kind.typ), parameters)
    assert response.status_code == 200, response
    return [(row.memory_id, row.version) for row in response.context["cl"].result_list]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.typ)
def test_the_trash_holds_what_was_deleted_and_is_not_there(anna: Client, kind: Kind) -> None:
    origin = Origin(SYSTEM, "anna", "planer", "rest", "test")
    store(kind, **OWN)
    back, again = gone(kind=kind), gone(kind=kind)
    for key in (back, again):
        restore(kind, key, 1, origin)
    delete(kind, [again], origin)
    last = gone(kind=kind)
    assert shown(anna, kind) == [(last, 2), (again, 4)]
    if kind is SHORTTERM:
        promote([store(SHORTTERM, **OWN)], origin)
        assert len(shown(anna, kind)) == 2


def test_the_trash_is_filtered_by_who_when_and_why(anna: Client) -> None:
    one = gone("Doppelt vorhanden", who="ben", kurzbeschreibung="Frist")
    two = gone("veraltet", kurzbeschreibung="Vertrag")
    LongtermVersion.objects.filter(memory_id=two).update(zeitpunkt=timezone.now() - timedelta(days=20))
    assert shown(anna, wer="ben") == shown(anna, grund="doppelt") == shown(anna, age="today") == [(one, 2)]
    assert shown(anna, wer="planer", age="month") == [(one, 2), (two, 2)]
    assert shown(anna, q="vertrag") == shown(anna, q=f"longterm_{two}") == shown(anna, q="VERALTET") == [(two, 2)]
    assert shown(anna, wer="ben", grund="veraltet") == []
    assert anna.get(url("trash"), {"tuer": "rest"}).status_code == 302


def test_a_memory_is_restored_from_the_trash(anna: Client) -> None:
    key = gone("Versehen")
    assert f'href="{url("trash")}"' in anna.get(url("changelist")).content.decode()
    page = anna.get(url("trash")).content.decode()
    assert '<p class="explanation">' in page
    assert "Versehen" in page
    assert "1 long-term memory\n" in page
    assert f'href="{url("version", key, 2)}"' in page
    anna.post(url("restore", key, 2), {"grund": "doch nicht"})
    assert LongtermMemory.objects.get(pk=key).version == 3
    assert shown(anna) == []


def test_a_person_sees_only_what_was_his_in_the_trash() -> None:
    mine = gone(nutzer="ben")
    gone(nutzer="anna")
    client = person("vera", ["view_longtermmemory"])
    User.objects.get(username="vera").grants.update(nutzer=["ben"])
    assert shown(client) == [(mine, 2)]
    assert client.get(url("trash", kind="brain")).status_code == 403
    assert client.post(url("restore", mine, 2)).status_code == 403
