"""What a link to a list can ask of the database: the declared filters and searches, nothing else, on every page."""

# ruff: noqa: SLF001 - pages and columns are looked up where Django keeps them

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib import admin
from django.db import connection
from django.db.models import ForeignKey, Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memories.models import EmbeddingProfile
from tests.admincast import person

pytestmark = pytest.mark.django_db
PAGES = sorted(admin.site._registry, key=lambda model: model._meta.label)
LISTS = [model for model in PAGES if model is not EmbeddingProfile]  # which has a page of its own, without parameters
each_list = pytest.mark.parametrize("model", LISTS, ids=lambda model: model._meta.label)
each_page = pytest.mark.parametrize("model", PAGES, ids=lambda model: model._meta.label)
MARK = "(mark+)+$"


@pytest.fixture
def anna() -> Client:
    """Administrator, who may look at everything."""
    client = person("anna", superuser=True)
    client.raise_request_exception = False
    return client


def address(model: type[Model], page: str = "changelist") -> str:
    """The list's address."""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}")


def asked(client: Client, where: str, **parameters: str) -> tuple[Any, str]:
    """The answer, and all that the database was asked for it."""
    with CaptureQueriesContext(connection) as queries:
        response = client.get(where, parameters)
    return response, "\n".join(query["sql"] for query in queries.captured_queries)


def lookups(model: type[Model]) -> Iterator[str]:
    """Ways to look into the model's columns and those of its neighbours."""
    for field in model._meta.get_fields():
        for how in ("", "__regex", "__iregex", "__icontains", "__isnull", "__in", "__gt"):
            yield f"{field.name}{how}"
        if isinstance(field, ForeignKey):
            yield f"{field.attname}__regex"
        remote = field.related_model if field.is_relation else None
        if isinstance(remote, type):
            for other in remote._meta.get_fields():
                yield f"{field.name}__{other.name}"
                yield f"{field.name}__{other.name}__regex"


def declared(model: type[Model], client: Client) -> set[str]:
    """The parameters of the list's own filters."""
    request = client.get(address(model)).wsgi_request
    return {each.parameter_name for each in admin.site._registry[model].get_list_filter(request)}  # type: ignore[union-attr]


@each_list
def test_undeclared_lookups_never_reach_the_database(anna: Client, model: type[Model]) -> None:
    page = admin.site._registry[model]
    request = anna.get(address(model)).wsgi_request
    own = declared(model, anna)
    tried = [lookup for lookup in lookups(model) if lookup not in own]
    assert len(tried) > 10
    for lookup in tried:
        assert page.lookup_allowed(lookup, MARK, request) is False, lookup
    for lookup in tried[:: max(1, len(tried) // 12)]:
        response, sql = asked(anna, address(model), **{lookup: MARK})
        assert (response.status_code, response.headers.get("Location")) == (302, f"{address(model)}?e=1"), lookup
        assert "mark" not in sql
        response, sql = asked(anna, address(model), **{lookup: MARK, "e": "1"})
        assert response.status_code == 200
        assert "mark" not in sql


@each_page
def test_the_search_is_never_a_pattern(anna: Client, model: type[Model]) -> None:
    for words in (MARK, "a b " * 40, '"', "'", "%_\\", "\0", "x" * 201, "a " * 5_000):
        response, sql = asked(anna, address(model), q=words)
        assert response.status_code in {200, 302}, words[:20]
        assert "REGEXP" not in sql
        assert " ~ " not in sql
        assert len(sql) < 200_000


@each_page
def test_lists_are_sorted_by_declared_columns_alone(anna: Client, model: type[Model]) -> None:
    for order in ("1.-2.3", "99", "-", "password", "-1.1.1.1.1", "1__regex", "\0", "9" * 400):
        response, sql = asked(anna, address(model), o=order)
        assert response.status_code in {200, 302}, order
        assert "ORDER BY RAND" not in sql.upper()
        assert not any('."password" ' in line.partition("ORDER BY")[2] for line in sql.splitlines())


@each_page
def test_pages_and_flags_of_any_value_are_no_fault(anna: Client, model: type[Model]) -> None:
    for name in ("p", "all", "_popup", "_facets", "e", "_changelist_filters"):
        for value in ("-1", "9" * 400, f"\0{MARK}", quote(f"memory__regex={MARK}")):
            response, sql = asked(anna, address(model), **{name: value})
            assert response.status_code in {200, 302}, (name, value[:20])
            assert "mark" not in sql


@each_list
def test_nothing_is_chosen_by_other_columns_than_those_that_rows_refer_to(anna: Client, model: type[Model]) -> None:
    for field in model._meta.concrete_fields:
        response, _sql = asked(anna, address(model), _to_field=field.name)
        assert response.status_code == (200 if field.primary_key else 400), field.name
    for other in ("password", "nothing", "pk__regex", "\0"):
        if other != model._meta.pk.name:  # type: ignore[union-attr]
            assert asked(anna, address(model), _to_field=other)[0].status_code == 400, other


@each_page
def test_the_choices_offered_while_typing_are_those_of_somebody_who_may_look(anna: Client, model: type[Model]) -> None:
    where = reverse("admin:autocomplete")
    nobody = person("vera")
    nobody.raise_request_exception = False
    for field in model._meta.get_fields():
        names = {"app_label": model._meta.app_label, "model_name": str(model._meta.model_name)}
        names["field_name"] = field.name
        assert nobody.get(where, names | {"term": "a"}).status_code in {403, 404}
        for term in (MARK, "\0" + "a " * 5_000):
            response, sql = asked(anna, where, term=term, **names)
            assert response.status_code in {200, 403, 404}, (field.name, term[:10])
            assert "REGEXP" not in sql
            assert len(sql) < 200_000


def test_pages_that_would_show_secrets_are_not_there() -> None:
    assert {model._meta.app_label for model in PAGES} <= {"auth", "memories", "oauth"}


def test_every_page_is_among_those_tested() -> None:
    assert {"auth.User", "auth.Group", "memories.LongtermMemory", "memories.CallRecord"} <= {
        model._meta.label for model in PAGES
    }
