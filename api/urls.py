"""The addresses of the machines' doors."""

from django.urls import path
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from api.rest import ToolsView, ToolView, UnknownToolView
from api.tools import TOOLS

urlpatterns = [
    path("tools/", ToolsView.as_view(), name="tools"),
    *(path(f"tools/{tool.name}/", ToolView.as_view(tool=tool), name=tool.name) for tool in TOOLS),
    path("tools/<str:name>/", extend_schema(exclude=True)(UnknownToolView).as_view()),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
]
