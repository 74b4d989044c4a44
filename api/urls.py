"""The addresses of the machines' doors."""

from django.urls import path, re_path
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from api.rest import ToolsView, ToolView, UnknownToolView
from api.tools import TOOLS
from api.wire import EnvelopeRenderer

# With and without the slash at the end: a redirect would turn a POST into a GET.
urlpatterns = [
    re_path(r"^tools/?$", ToolsView.as_view(), name="tools"),
    *(re_path(rf"^tools/{tool.name}/?$", ToolView.as_view(tool=tool), name=tool.name) for tool in TOOLS),
    re_path(r"^tools/(?P<name>[^/]+)/?$", extend_schema(exclude=True)(UnknownToolView).as_view()),
    path("schema/", SpectacularAPIView.as_view(renderer_classes=[EnvelopeRenderer]), name="schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
]
