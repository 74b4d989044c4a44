"""People import files in the admin: preview, run in steps, report; each his own, and only where he may write."""

import json
from datetime import timedelta
from io import BytesIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.models import Grant, ImportJob, ImportLine, LongtermMemory, LongtermVersion
from tests.admincast import messages, person, store
from tests.transferring import assert_sound, become_another_installation, export, lines_of

pytestmark = pytest.mark.django_db
IMPORTING = ["view_longtermmemory", "change_longtermmemory", "add_importjob", "view_importjob"]


def page(name: str, *args: object) -> str:
    """The address of a page of imports."""
    return reverse(f"admin:memories_importjob_{name}", args=args)


def upload(client: Client, text: str, **values: str) -> Any:
    """The response to an upload."""
    file = BytesIO(text.encode())
    file.name = "brain.jsonl"
    return client.post(page("add"), {"datei": file, "format": "brain"} | values)


def finish(client: Client) -> dict[str, int]:
    """Press the button until nothing is left; how many rows there are by verdict."""
    job = ImportJob.objects.latest("pk")
    for _step in range(20):
        response = client.get(page("change", job.pk))
        if not response.context["is_at_work"]:
            return {verdict.value: number for verdict, number, _rows in response.context["groups"]}
        client.post(page("step", job.pk))
    raise AssertionError("the import does not come to its end")


def two_lines() -> str:
    """An export of two memories, of which one is spoilt."""
    store(memory="Miete")
    store(memory="Pacht")
    header, first, second = export().splitlines()
    become_another_installation()
    return "\n".join([header, first, json.dumps(json.loads(second) | {"memory": " "}), "{"])


def test_a_file_is_previewed_then_imported_and_reported() -> None:
    client = person("anna", IMPORTING)
    response = upload(client, two_lines())
    job = ImportJob.objects.get()
    assert response["Location"] == page("change", job.pk)
    assert finish(client) == {"neu": 1, "geaendert": 0, "gleich": 0, "fehlerhaft": 2}
    assert not LongtermMemory.objects.exists()
    body = client.get(page("change", job.pk)).content.decode()
    assert "Import now" in body
    assert "memory: " in body
    client.post(page("start", job.pk))
    assert finish(client) == {"neu": 1, "geaendert": 0, "gleich": 0, "fehlerhaft": 2}
    version = LongtermVersion.objects.get()
    assert (version.memory, version.tuer, version.benutzer) == ("Miete", "import", "anna")
    report = b"".join(client.get(page("report", job.pk)).streaming_content).decode()
    assert report.startswith("\ufeffLine,Outcome,")
    assert f"2,new,longterm_{version.memory_id}" in report
    assert "3,faulty" in report
    assert "4,faulty" in report
    assert not ImportLine.objects.filter(zeile__isnull=False).exists()
    assert_sound()


def test_the_same_file_again_changes_nothing() -> None:
    client = person("anna", IMPORTING)
    text = two_lines()
    for verdict in ("neu", "gleich"):
        upload(client, text)
        assert finish(client)[verdict] == 1
        client.post(page("start", ImportJob.objects.latest("pk").pk))
        assert finish(client)[verdict] == 1
    assert LongtermVersion.objects.count() == 1


@pytest.mark.parametrize("text", ["{\n", "\n \n", '{"typ": "longterm"}\n'])
def test_a_file_in_which_nothing_is_to_import_says_so_and_offers_no_import(text: str) -> None:
    client = person("anna", IMPORTING)
    upload(client, text)
    finish(client)
    body = client.get(page("change", ImportJob.objects.get().pk)).content.decode()
    assert "nothing in this file that an import would change" in body
    assert "Import now" not in body
    assert "Discard this import" in body


def test_long_work_goes_on_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.transfer.jobs._SECONDS_A_STEP", 0.0001)
    monkeypatch.setattr("memories.transfer.jobs.AT_ONCE", 10)
    store()
    line = lines_of(export())[0]
    become_another_installation()
    named = [json.dumps(line | {"herkunft": {"instanz": "x", "ID": str(number)}}) for number in range(25)]
    client = person("anna", IMPORTING)
    upload(client, "\n".join(named))
    job = ImportJob.objects.get()
    client.post(page("step", job.pk))
    response = client.get(page("change", job.pk))
    assert (response.context["done"], response.context["total"]) == (10, 25)
    assert finish(client)["neu"] == 25
    client.post(page("start", job.pk))
    client.post(page("step", job.pk))
    assert LongtermMemory.objects.count() == 10
    assert finish(client)["neu"] == 25
    assert LongtermMemory.objects.count() == 25


def test_what_the_file_does_not_say_the_form_does() -> None:
    client = person("anna", IMPORTING)
    line = json.dumps({"typ": "longterm", "kurzbeschreibung": "K", "memory": "M", "mehr": 1})
    upload(client, line, nutzer="anna", agent="planer", scope="global")
    assert finish(client)["neu"] == 1
    client.post(page("start", ImportJob.objects.get().pk))
    finish(client)
    memory = LongtermMemory.objects.get()
    assert (memory.nutzer, memory.agent, memory.scope) == ("anna", "planer", "global")
    assert "mehr" in ImportLine.objects.get().hinweise


def test_rows_out_of_reach_are_faulty() -> None:
    client = person("ben", IMPORTING)
    text = two_lines()
    Grant.objects.filter(user=User.objects.get(username="ben")).update(nutzer=["ben"])
    upload(client, text)
    assert finish(client)["fehlerhaft"] == 3
    client.post(page("start", ImportJob.objects.get().pk))
    assert finish(client)["fehlerhaft"] == 3
    assert not LongtermVersion.objects.exists()


def test_everybody_has_his_own_imports() -> None:
    upload(person("anna", IMPORTING), two_lines())
    job = ImportJob.objects.get()
    ben = person("ben", IMPORTING)
    assert ben.get(page("changelist")).context["cl"].result_count == 0
    for name in ("change", "report"):
        assert ben.get(page(name, job.pk)).status_code == 404
    for name in ("step", "start", "discard"):
        assert ben.post(page(name, job.pk)).status_code == 404
        assert ben.get(page(name, job.pk)).status_code == 404
    viewer = person("vera", ["view_longtermmemory", "change_longtermmemory", "view_importjob"])
    assert viewer.get(page("add")).status_code == 403
    reader = person("carla", ["view_longtermmemory", "add_importjob", "view_importjob"])
    assert reader.get(page("add")).status_code == 403
    assert ImportJob.objects.count() == 1


def test_a_newer_format_is_told_in_the_form() -> None:
    client = person("anna", IMPORTING)
    response = upload(client, '{"brain_export": 9}')
    assert response.status_code == 200
    assert "format 9" in response.content.decode()
    assert not ImportJob.objects.exists()


def test_imports_are_discarded_or_forgotten() -> None:
    client = person("anna", IMPORTING)
    for _time in range(2):
        upload(client, two_lines())
    response = client.post(page("discard", ImportJob.objects.latest("pk").pk), follow=True)
    assert "discarded" in messages(response)
    ImportJob.objects.update(angelegt_am=timezone.now() - timedelta(days=8))
    call_command("clean_up", verbosity=0)
    assert not ImportLine.objects.exists()


def test_two_requests_do_not_do_the_same_step() -> None:
    client = person("anna", IMPORTING)
    upload(client, two_lines())
    ImportJob.objects.update(leased_until=timezone.now() + timedelta(minutes=1))
    job = ImportJob.objects.get()
    client.post(page("step", job.pk))
    assert client.get(page("change", job.pk)).context["done"] == 0
