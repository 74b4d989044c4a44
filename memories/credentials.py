"""Recognises credentials in texts by the forms that their issuers gave them, whatever script stands beside them."""

import re
import unicodedata
from itertools import groupby

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

KEPT, REFUSED = "keep", "refuse"  # what BRAIN_SECRETS may say
_SHORTEST = len("://u:p@h")
_IN_40 = r"""["']?\s{0,3}[:=]\s{0,3}["']?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])"""

# Whose it is, or what; how it begins, of a fixed width and ending in a character as it is; how it goes on. Of forms
# that nothing else has, a few characters are enough; others must be as long as the real ones.
_FORMS: tuple[tuple[str | Promise, str, str], ...] = (
    ("Anthropic", "sk-", r"ant-(?!(?:[a-z]{3,5}[0-9]{2}-?)?(?![\w-]))[\w-]{3}"),
    ("OpenAI", "sk-", r"(?:proj-[\w-]{3}|(?:svcacct|admin|None)-[\w-]{20}|[A-Za-z0-9]{20})"),
    ("OpenRouter", "sk-", r"or-v1-[0-9a-f]{3}"),
    ("GitLab", "glpat-", r"[\w-]{16}"),
    ("Slack", "xox[abeoprs]-", r"[\w-]{10}"),
    ("Slack", "xapp-", r"[0-9]-[\w-]{10}"),
    ("Google", "GOCSPX-", r"[\w-]{20}"),
    ("PyPI", "pypi-", r"AgE[\w-]{10}"),
    ("Perplexity", "pplx-", r"[A-Za-z0-9]{40}"),
    ("xAI", "xai-", r"[A-Za-z0-9]{20}"),
    ("Groq", "gsk_", r"[A-Za-z0-9]{20}"),
    ("Stripe", "[sr]k_", r"(?:live|test)_[A-Za-z0-9]{3}"),
    ("Stripe", "whsec_", r"[A-Za-z0-9]{3}"),
    ("GitHub", "gh[oprsu]_", r"[A-Za-z0-9]{20}"),
    ("GitHub", "github_pat_", r"\w{20}"),
    ("AWS", "(?i:secret_access)_", rf"(?i:key){_IN_40}"),
    ("Hugging Face", "hf_", r"[A-Za-z0-9]{20}"),
    ("Replicate", "r8_", r"[A-Za-z0-9]{37}"),
    ("Notion", "ntn_", r"[A-Za-z0-9]{40}"),
    ("npm", "npm_", r"[A-Za-z0-9]{30}"),
    ("DigitalOcean", "do[opr]_v1_", r"[0-9a-f]{32}"),
    ("Shopify", "shp[acps][ast]_", r"[0-9a-fA-F]{32}"),
    ("Brain", "brk_", r"[0-9a-f]{12}\.[\w-]{20}"),
    ("AWS", "A[KS]I", r"A[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("Google", "AI", r"za[\w-]{35}(?![\w-])"),
    ("Google", "ya29.", r"[\w-]{20}"),
    ("SendGrid", "SG.", r"[\w-]{16,32}\.[\w-]{16}"),
    ("HashiCorp", "hv[bs].", r"[\w-]{24}"),
    ("Azure", "AccountKey=", r"[A-Za-z0-9/+]{60}"),
    (gettext_lazy("a JSON Web Token"), "(?<![_-])eyJ", r"[\w-]{8,}+\.[\w-]{2,}+\.[\w-]{8}"),
)
# Those that may stand directly beside letters and digits, since nothing else is so long and begins or goes on so.
_BLOCKS: tuple[tuple[str | Promise, str], ...] = (
    ("Anthropic", r"-(?<=sk-)ant-[a-z]{3,5}[0-9]{2}-[\w-]{20}"),
    ("OpenAI", r"J(?<=[\w-]{20}T3BlbkFJ)[\w-]{20}"),
    ("GitHub", r"_(?<=gh[oprsu]_)[A-Za-z0-9]{36}"),
    ("GitHub", r"_(?<=github_pat_)\w{40}"),
    ("AWS", rf"y(?<=ecretAccessKey){_IN_40}"),
    ("Slack", r"/(?<=hooks\.slack\.com/services/)T\w{8,}+/B\w{8,}+/\w{20}"),
    ("Discord", r"/(?<=/api/webhooks/)[0-9]{16,}+/[\w-]{60}"),
    ("Telegram", r":(?<=[0-9]{8}:)AA[\w-]{30}"),
    (
        gettext_lazy("a private key"),
        (
            r"Y(?<= PRIVATE KEY)(?: BLOCK)? ?-{4,5}"
            r"(?:[ \t]*(?:[\r\n]|\\[nr])[\s\\nr>|]{0,20}[\w/+]{4}| ?[\w/+]{24})"
        ),
    ),
    (
        gettext_lazy("an address with a password"),
        (
            r"""://[^\s/?#@:"'<>]{0,255}:"""
            r"(?![0-9]{1,5}[^\w%@-])"  # a port, and a mail address after it
            r"(?!(?i:pass|password|passwort|passwd|pwd?|kennwort|secret|geheim|x{3,})@|[*.…]+@|[$%{\[])"
            r"""[^\s/?#@"'<>]{1,255}@[\w\[]"""
        ),
    ),
)
# What JSON, addresses and programs write for a line break or a character such as an umlaut.
_ESCAPES = (r"\\[bfnrtv]", r"\\u[0-9A-Fa-f]{4}", r"\\x[0-9A-Fa-f]{2}", "%[0-9A-Fa-f]{2}")
# Characters that are not seen (Unicode: Default_Ignorable_Code_Point), other hyphens, and other forms of ASCII letters
# and digits.
UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HYPHENS = "\u2010-\u2015\u2043\u2212"
_OTHER_FORMS = "\ufe58\ufe63\uff0d\uff10-\uff19\uff21-\uff3a\uff3f\uff41-\uff5a\U0001d400-\U0001d7ff"
_DISGUISE = re.compile(f"[{UNSEEN}{_HYPHENS}{_OTHER_FORMS}](?:(?=[!-~])|(?<=[{_OTHER_FORMS}]))")
_UNSEEN_RUN, _HYPHEN = re.compile(f"[{UNSEEN}]+"), re.compile(f"[{_HYPHENS}]")


def credential_in(text: str) -> str | None:
    """What kind of credential the text holds, in words; None without one, or when the settings let them be kept."""
    if len(text) < _SHORTEST:
        return None
    found = _PATTERN.search(text)
    if found is None and not text.isascii() and _DISGUISE.search(text):
        text = _HYPHEN.sub("-", _UNSEEN_RUN.sub("", unicodedata.normalize("NFKC", text)))
        found = _PATTERN.search(text)
    if found is None and "\\" in text:  # as Markdown has it
        found = _PATTERN.search(text.replace("\\_", "_").replace("\\-", "-"))
    if found is None or settings.BRAIN_SECRETS == KEPT:
        return None
    what = _WHATS[(found.lastindex or 0) - 1]
    return str(what) if isinstance(what, Promise) else _("a key or token of %(owner)s") % {"owner": what}


def _compiled() -> tuple[re.Pattern[str], list[str | Promise]]:
    """One pattern of all forms, and what each of its groups is.

    Forms are looked for by the last character of their prefix, which is rarer in texts than the first. Before the
    prefix stands no letter or digit of ASCII, unless as part of an escape such as `\\n` or `%3D`.
    """
    whats: list[str | Promise] = []
    branches = []
    for end, of_end in groupby(_FORMS, lambda form: form[1][-1]):
        inner = []
        prefixes = []
        for prefix, of_prefix in groupby(of_end, lambda form: form[1]):
            owners, rests = zip(*((owner, rest) for owner, _prefix, rest in of_prefix), strict=True)
            whats.extend(owners)
            prefixes.append(prefix)
            escaped = "".join(f"|(?<={escape}{prefix})" for escape in _ESCAPES)
            edge = rf"(?:(?<![A-Za-z0-9]{prefix}){escaped})"
            inner.append(rf"(?<={prefix}){edge}(?:{'|'.join(f'{rest}()' for rest in rests)})")
        char = re.escape(end)
        others = f"|(?<!{prefixes[0]})(?:{'|'.join(inner[1:])})" if inner[1:] else ""
        branches.append(rf"{char}(?<=[A-Za-z0-9]{char})(?:{inner[0]}{others})")
    for what, form in _BLOCKS:
        whats.append(what)
        branches.append(f"{form}()")
    return re.compile("|".join(branches), re.ASCII), whats


_PATTERN, _WHATS = _compiled()
