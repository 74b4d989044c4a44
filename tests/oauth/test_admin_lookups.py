"""What links to lists can ask of the database, with the pages of OAuth among them."""

from tests.test_admin_lookups import (  # noqa: F401 - collected here
    PAGES,
    anna,
    pytestmark,
    test_lists_are_sorted_by_declared_columns_alone,
    test_nothing_is_chosen_by_other_columns_than_those_that_rows_refer_to,
    test_pages_and_flags_of_any_value_are_no_fault,
    test_pages_that_would_show_secrets_are_not_there,
    test_the_choices_offered_while_typing_are_those_of_somebody_who_may_look,
    test_the_search_is_never_a_pattern,
    test_undeclared_lookups_never_reach_the_database,
)


def test_the_pages_of_oauth_are_among_them() -> None:
    assert {"oauth.Client", "oauth.Connection"} <= {model._meta.label for model in PAGES}  # noqa: SLF001
