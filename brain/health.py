"""Health: whether the process answers, and whether it can do its work."""

from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers."""
    del request
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and has every migration, otherwise 503; no details for strangers."""
    del request
    checks = {"database": False, "migrations": False}
    try:
        executor = MigrationExecutor(connection)
        checks["database"] = True
        checks["migrations"] = not executor.migration_plan(executor.loader.graph.leaf_nodes())
    except Error:
        pass
    ready = all(checks.values())
    return JsonResponse({"status": "ok" if ready else "not ready", "checks": checks}, status=200 if ready else 503)
