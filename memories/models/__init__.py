"""The nouns: memories and their versions, tags, access keys."""

from memories.models.access import AccessKey, Grant, ServiceAccount
from memories.models.call import CallRecord, KeyUsage
from memories.models.duplicate import ComparedText, DuplicatePair, Likeness
from memories.models.erasure import ErasedMemory, Erasure
from memories.models.memory import (
    Aktion,
    BrainMemory,
    BrainVersion,
    LongtermMemory,
    LongtermVersion,
    Memory,
    MemoryTyp,
    ScopeTyp,
    ShorttermMemory,
    ShorttermVersion,
    Version,
)
from memories.models.recall import Recall, RecalledSearch
from memories.models.repeat import HandledEntry, RepeatableCall
from memories.models.search import EmbeddingProfile, PastEntry, SearchEntry, VectorBlock, Word
from memories.models.tag import BrainTag, LongtermTag, ShorttermTag, Tag, TagLink
from memories.models.transfer import ImportedMemory, ImportJob, ImportLine, Installation, OpenReference, Stage
from memories.models.view import ListSetting, SavedView

__all__ = [
    "AccessKey",
    "Aktion",
    "BrainMemory",
    "BrainTag",
    "BrainVersion",
    "CallRecord",
    "ComparedText",
    "DuplicatePair",
    "EmbeddingProfile",
    "ErasedMemory",
    "Erasure",
    "Grant",
    "HandledEntry",
    "ImportJob",
    "ImportLine",
    "ImportedMemory",
    "Installation",
    "KeyUsage",
    "Likeness",
    "ListSetting",
    "LongtermMemory",
    "LongtermTag",
    "LongtermVersion",
    "Memory",
    "MemoryTyp",
    "OpenReference",
    "PastEntry",
    "Recall",
    "RecalledSearch",
    "RepeatableCall",
    "SavedView",
    "ScopeTyp",
    "SearchEntry",
    "ServiceAccount",
    "ShorttermMemory",
    "ShorttermTag",
    "ShorttermVersion",
    "Stage",
    "Tag",
    "TagLink",
    "VectorBlock",
    "Version",
    "Word",
]
