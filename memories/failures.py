"""How often in a row the same call of a key has failed: kept with the key, so that all processes count together."""

import hashlib

from django.db import InterfaceError, OperationalError
from django.db.models import Case, F, When

from memories.models import AccessKey
from memories.principal import Principal


def note_failure(principal: Principal, call: str) -> int:
    """How often in a row the principal's key has failed with this call, this time included. Without a key it is 1."""
    if principal.key_id is None:
        return 1
    digest = hashlib.sha256(call.encode()).hexdigest()
    again = Case(When(failed_call=digest, then=F("failed_times") + 1), default=1)
    key = AccessKey.objects.filter(pk=principal.key_id)
    try:
        key.update(failed_times=again, failed_call=digest)
        times: int = key.values_list("failed_times", flat=True).get()
    except (OperationalError, InterfaceError, AccessKey.DoesNotExist):
        return 1  # the fault is told without the number
    return times


def note_success(principal: Principal) -> None:
    """A call of the principal's key succeeded; this costs a statement only after a failure."""
    if principal.key_id is None or not principal.failed_before:
        return
    try:
        AccessKey.objects.filter(pk=principal.key_id).update(failed_call="", failed_times=0)
    except (OperationalError, InterfaceError):
        return  # what was executed is answered all the same
