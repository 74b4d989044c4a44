"""The admin: thin, one service call each. Registered here, by name."""

from django.contrib import admin
from django.contrib.auth.models import Group, User

from memories.admin.calls import CallRecordAdmin
from memories.admin.keys import AccessKeyAdmin, ServiceAccountAdmin
from memories.admin.memory import BrainMemoryAdmin, LongtermAdmin, ShorttermAdmin
from memories.admin.people import GroupAdmin, UserAdmin
from memories.admin.profiles import EmbeddingProfileAdmin
from memories.admin.recalls import RecallAdmin
from memories.admin.tags import TagAdmin
from memories.admin.versions import BrainVersionAdmin, LongtermVersionAdmin, ShorttermVersionAdmin
from memories.models import (
    AccessKey,
    BrainMemory,
    BrainVersion,
    CallRecord,
    EmbeddingProfile,
    LongtermMemory,
    LongtermVersion,
    Recall,
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
    (CallRecord, CallRecordAdmin),
    (Recall, RecallAdmin),
    (User, UserAdmin),
    (Group, GroupAdmin),
)

for stock in (User, Group):
    admin.site.unregister(stock)
for model, model_admin in ADMINS:
    admin.site.register(model, model_admin)

admin.site.site_header = admin.site.site_title = "Brain"
admin.site.site_url = None
