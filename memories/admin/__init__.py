"""The admin: thin, one service call each. Registered here, by name."""

import django_otp.plugins.otp_static.admin
import django_otp.plugins.otp_totp.admin  # noqa: F401 - both register pages that show secrets, which are removed below
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.utils.translation import gettext_lazy
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice

from memories.admin.calls import CallRecordAdmin
from memories.admin.duplicates import DuplicatePairAdmin
from memories.admin.erasing import ErasureAdmin
from memories.admin.importing import ImportJobAdmin
from memories.admin.keys import AccessKeyAdmin, ServiceAccountAdmin
from memories.admin.memory import BrainMemoryAdmin, LongtermAdmin, ShorttermAdmin
from memories.admin.people import GroupAdmin, UserAdmin
from memories.admin.profiles import EmbeddingProfileAdmin
from memories.admin.proposals import QUEUE
from memories.admin.recalls import RecallAdmin
from memories.admin.signing_in import SignInForm
from memories.admin.tags import TagAdmin
from memories.admin.versions import BrainVersionAdmin, LongtermVersionAdmin, ShorttermVersionAdmin
from memories.models import (
    AccessKey,
    BrainMemory,
    BrainVersion,
    CallRecord,
    DuplicatePair,
    EmbeddingProfile,
    Erasure,
    ImportJob,
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
    (DuplicatePair, DuplicatePairAdmin),
    (EmbeddingProfile, EmbeddingProfileAdmin),
    (AccessKey, AccessKeyAdmin),
    (ServiceAccount, ServiceAccountAdmin),
    (CallRecord, CallRecordAdmin),
    (Recall, RecallAdmin),
    (ImportJob, ImportJobAdmin),
    (Erasure, ErasureAdmin),
    (User, UserAdmin),
    (Group, GroupAdmin),
)

PAGES = (QUEUE,)

for stock in (User, Group, StaticDevice, TOTPDevice):
    admin.site.unregister(stock)
for model, model_admin in ADMINS:
    admin.site.register(model, model_admin)

admin.site.pages = PAGES  # type: ignore[attr-defined]
admin.site.site_header = admin.site.site_title = "Brain"
admin.site.index_title = gettext_lazy("Overview")
admin.site.index_template = "admin/memories/start.html"
admin.site.site_url = None
admin.site.login_form = SignInForm
admin.site.login_template = "admin/memories/login.html"
