"""A view with a serializer, as the documentation of Django REST framework shows it."""

from typing import Any

import numpy as np
from django.db import transaction
from rest_framework import serializers
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from bench.plain.models import PlainMemory


class PlainSerializer(serializers.ModelSerializer):
    """One memory."""

    tags = serializers.ListField(child=serializers.CharField(max_length=100), max_length=100)
    embedding = serializers.ListField(child=serializers.FloatField(), min_length=1)

    class Meta:
        model = PlainMemory
        fields = [
            "kurzbeschreibung",
            "memory",
            "scope",
            "scope_vk",
            "nutzer",
            "agent",
            "tags",
            "embedding",
            "embedding_profil_hash",
        ]

    def create(self, validated_data: dict[str, Any]) -> PlainMemory:
        """Save the row, then its tags."""
        tags = validated_data.pop("tags")
        numbers = validated_data.pop("embedding")
        memory = PlainMemory(**validated_data, embedding=np.array(numbers, dtype="<f4").tobytes())
        memory.save()
        memory.tags.set(tags)
        return memory


class PlainInsert(APIView):
    """Insert one memory; the same authentication as the tools."""

    parser_classes = [JSONParser]
    renderer_classes = [JSONRenderer]

    def post(self, request: Request) -> Response:
        """Validate and save."""
        serializer = PlainSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        with transaction.atomic():
            memory = serializer.save()
        return Response({"ID": memory.pk})
