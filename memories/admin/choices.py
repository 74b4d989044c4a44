"""What forms offer while somebody types."""

from typing import Any

from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from memories.admin.base import LONGEST_SEARCH


class Choices(AutocompleteJsonView):
    """Django's, for columns of forms alone and for words of bounded length."""

    def process_request(self, request: HttpRequest) -> tuple[str, Any, Any, str]:
        """What is typed, and where. Raises PermissionDenied for what no form has."""
        term, page, field, to_field = super().process_request(request)
        if field.auto_created:
            raise PermissionDenied
        return term[:LONGEST_SEARCH].replace("\0", " "), page, field, to_field
