"""The admin: thin, one service call each. Registered here, by name."""

from django.contrib import admin

from memories.admin.keys import AccessKeyAdmin, ServiceAccountAdmin
from memories.admin.memory import BrainMemoryAdmin, LongtermAdmin, ShorttermAdmin
from memories.admin.profiles import EmbeddingProfileAdmin
from memories.admin.tags import TagAdmin
from memories.admin.versions import BrainVersionAdmin, LongtermVersionAdmin, ShorttermVersionAdmin
from memories.models import (
    AccessKey,
    BrainMemory,
    BrainVersion,
    EmbeddingProfile,
    LongtermMemory,
    LongtermVersion,
    ServiceAccount,
    ShorttermMemory,
    ShorttermVersion,
    Tag,
)

ADMINS = (
    (LongtermMemory, LongtermAdmin),
    (ShorttermMemory, ShorttermAdmin),
    (BrainMemory, BrainMemoryAdmin),
    (LongtermVersion, LongtermVersionAdmin),
    (ShorttermVersion, ShorttermVersionAdmin),
    (BrainVersion, BrainVersionAdmin),
    (Tag, TagAdmin),
    (EmbeddingProfile, EmbeddingProfileAdmin),
    (AccessKey, AccessKeyAdmin),
    (ServiceAccount, ServiceAccountAdmin),
)

for model, model_admin in ADMINS:
    admin.site.register(model, model_admin)

admin.site.site_header = admin.site.site_title = "Brain"
admin.site.site_url = None
