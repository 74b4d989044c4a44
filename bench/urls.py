"""The project's addresses and the plain view's."""

from django.urls import include, path

from bench.plain.views import PlainInsert

urlpatterns = [path("plain/", PlainInsert.as_view()), path("", include("brain.urls"))]
