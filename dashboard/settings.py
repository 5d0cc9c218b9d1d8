"""All settings, from environment variables: only they differ between a laptop and production.

`FUMAROLE_EMBEDDED=1` (set by `manage.py up`) allows what a first look needs: a secret key made and
kept under `var/`, SQLite, plain HTTP on this machine. Without it SECRET_KEY is required and cookies
are secure.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import os
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

from scheduler.conf import (
    KUBERNETES,
    BadSetting,
    KubernetesConf,
    NoticesConf,
    SignOnConf,
    kubernetes_conf,
    notices_conf,
    sign_on_conf,
)
from scheduler.logs import REQUESTS, SESSIONS
from scheduler.supervisor.runtime import embedded_redis_url, embedded_secret_key

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

VAR_DIR = Path(env("FUMAROLE_VAR", default=str(BASE_DIR / "var")))
EMBEDDED = env.bool("FUMAROLE_EMBEDDED", default=False)
DEBUG = env.bool("DEBUG", default=False)


def secret_key() -> str:
    given = env("SECRET_KEY", default="")
    if given:
        return str(given)
    if EMBEDDED:
        return embedded_secret_key(VAR_DIR)
    raise ImproperlyConfigured(
        "SECRET_KEY is not set. Set it to a long random text that stays secret, "
        "or start with “make run”."
    )


SECRET_KEY = secret_key()
ALLOWED_HOSTS = env.list(
    "ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"] if EMBEDDED else []
)
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
READ_ONLY = env.bool("READ_ONLY", default=False)

# The packages of requirements-sso.txt: single sign-on, and second factors. Where they are
# installed their tables are made, whether sign-on is set up or not.
HAS_SIGN_ON_PACKAGES = importlib.util.find_spec("allauth") is not None
SIGN_ON_APPS = [
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "axes",
    *(SIGN_ON_APPS if HAS_SIGN_ON_PACKAGES else ()),
    "scheduler",
    "dashboard",
]

MIDDLEWARE = [
    "dashboard.http.proxies.TrustedProxyMiddleware",
    "dashboard.http.middleware.RequestIdMiddleware",
    "dashboard.http.metrics.HttpFiguresMiddleware",
    "dashboard.api.framework.cors.CorsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "dashboard.http.middleware.QuickGZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "dashboard.http.middleware.ContentSecurityPolicyMiddleware",
    "dashboard.http.middleware.PrivateAnswersMiddleware",
    "axes.middleware.AxesMiddleware",
    "dashboard.http.middleware.UnavailableMiddleware",
    "dashboard.api.framework.errors.ApiErrorMiddleware",
]

if HAS_SIGN_ON_PACKAGES:
    MIDDLEWARE.append("allauth.account.middleware.AccountMiddleware")

ROOT_URLCONF = "dashboard.urls"
ASGI_APPLICATION = "dashboard.asgi.application"
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
                "dashboard.http.context.console",
            ],
        },
    },
]


def database_at(url: str) -> dict[str, Any]:
    try:
        config = dict(env.db_url_config(url))
    except ValueError:
        config = {}
    if config.get("ENGINE") not in ("django.db.backends.sqlite3", "django.db.backends.postgresql"):
        raise ImproperlyConfigured(
            "DATABASE_URL is not the address of a database that Fumarole works with. "
            "Give one like postgres://user:password@host:5432/name, "
            "or leave it out for SQLite under var/."
        )
    return config


# A machine that froze or lost its network must not keep its locks for hours: both ends look after
# ten seconds of silence whether the other is still there, and PostgreSQL ends a transaction in
# which nothing happens for two minutes.
UNTIL_SILENCE_IS_NOTICED = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,  # milliseconds
    "options": (
        "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 "
        "-c tcp_user_timeout=20000 -c idle_in_transaction_session_timeout=120000"
    ),
}


def database() -> dict[str, Any]:
    """DATABASE_URL, or SQLite under var/ with the settings that let several processes share it."""
    url = env("DATABASE_URL", default="")
    embedded: dict[str, Any] = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(VAR_DIR / "fumarole.sqlite3"),
    }
    if url:
        config = database_at(url)
    else:
        config = embedded
    if config["ENGINE"] == "django.db.backends.sqlite3":
        config["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            # Seconds to wait for another writer. In the web somebody waits, in a worker nobody.
            "timeout": 5 if env.bool("DATABASE_POOLED", default=False) else 20,
            "init_command": (
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;"
            ),
        }
    else:
        config["CONN_HEALTH_CHECKS"] = True
        config["OPTIONS"] = {**UNTIL_SILENCE_IS_NOTICED, **dict(config.get("OPTIONS") or {})}
        if env.bool("DATABASE_KEEPS_PLANS", default=True):
            # Only cursors that ask for it prepare anything: scheduler/models/kept_plans.py.
            config["OPTIONS"].setdefault("prepare_threshold", 5)
        keep_connections(config)
    return config


def keep_connections(config: dict[str, Any]) -> None:
    """The web shares a few connections: one kept by each of its threads would be too many.

    `asgi.py` says that this is the web.
    """
    if env.bool("DATABASE_POOLED", default=False):
        config["CONN_MAX_AGE"] = 0
        config["OPTIONS"]["pool"] = {
            "min_size": 1,
            "max_size": env.int("DATABASE_POOL_SIZE", default=20),
            "timeout": 5,
        }
    else:
        config.setdefault("CONN_MAX_AGE", env.int("CONN_MAX_AGE", default=60))


DATABASES = {"default": database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = (
    env("REDIS_URL", default="") or embedded_redis_url(VAR_DIR) or "redis://127.0.0.1:6379/0"
)
CHANNEL_LAYERS = {
    "default": {"BACKEND": "dashboard.live.layer.NewsLayer", "CONFIG": {"hosts": [REDIS_URL]}}
}

CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "max_retries": 1,
    "interval_start": 0,
    "interval_max": 0.2,
    "socket_connect_timeout": 2,
    "socket_timeout": 5,  # a Redis that hangs must not hold up who asks for a session
}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {"scheduler.tasks.run_session": {"queue": "scheduler"}}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Seconds until a new pool process is taken for dead. On a busy machine the usual 4 are too few.
CELERY_WORKER_PROC_ALIVE_TIMEOUT = 60.0
CELERY_BEAT_SCHEDULER = "dashboard.worker.beat:SteadyScheduler"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"

CLUSTER = env("SCHEDULER_CLUSTER", default="simulated")


def kubernetes() -> KubernetesConf:
    """How to reach the cluster that is mirrored. Looked at only where one is."""
    if CLUSTER != KUBERNETES:
        return KubernetesConf()
    try:
        return kubernetes_conf(os.environ)
    except BadSetting as problem:
        raise ImproperlyConfigured(str(problem)) from None


def notices() -> NoticesConf:
    try:
        return notices_conf(os.environ)
    except BadSetting as problem:
        raise ImproperlyConfigured(str(problem)) from None


def sign_on() -> SignOnConf:
    try:
        found = sign_on_conf(os.environ)
    except BadSetting as problem:
        raise ImproperlyConfigured(str(problem)) from None
    if found.is_on and not HAS_SIGN_ON_PACKAGES:
        raise ImproperlyConfigured(
            "SSO_ISSUER is set, but the packages for single sign-on are not installed. "
            "Install requirements-sso.txt, or leave SSO_ISSUER out."
        )
    return found


def email() -> dict[str, Any]:
    """EMAIL_URL, or nothing: then nobody is offered e-mail."""
    url = env("EMAIL_URL", default="")
    if not url:
        return {"EMAIL_BACKEND": "django.core.mail.backends.dummy.EmailBackend"}
    try:
        return dict(env.email_url_config(url))
    except (ImproperlyConfigured, KeyError, ValueError):
        raise ImproperlyConfigured(
            "EMAIL_URL is not the address of a mail server. "
            "Give one like smtp+tls://user:password@mail.example.com:587."
        ) from None


for _name, _value in email().items():
    globals()[_name] = _value
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env("DEFAULT_FROM_EMAIL", default="fumarole@localhost")

# The scheduler's own settings; scheduler/conf.py reads them into a typed value.
SCHEDULER = {
    "cluster": CLUSTER,
    "kubernetes": kubernetes(),
    "tick_seconds": 0.5,
    "lease_seconds": env.float("SCHEDULER_LEASE_SECONDS", default=30.0),
    "demo": env.bool("DEMO", default=True) and CLUSTER != KUBERNETES,
    # The most that may wait, and the most pods of one job; 0 lifts a limit.
    "limits": {
        "pods_per_job": env.int("MAX_PODS_PER_JOB", default=100_000),
        "jobs_per_queue": env.int("MAX_WAITING_JOBS_PER_QUEUE", default=10_000),
        "pods_per_queue": env.int("MAX_WAITING_PODS_PER_QUEUE", default=100_000),
        "jobs_per_user": env.int("MAX_WAITING_JOBS_PER_USER", default=10_000),
        "pods_per_user": env.int("MAX_WAITING_PODS_PER_USER", default=100_000),
    },
    "notices": notices(),
    "sign_on": sign_on(),
    # Of one core, for looking ahead to when waiting gangs start; 0 turns it off.
    "forecast_share": env.float("FORECAST_SHARE", default=0.05),
    # For sessions that can be run again; what is older is thinned out to fit.
    "replay_megabytes": env.int("REPLAY_MEGABYTES", default=64),
    # How long each table keeps its rows, for example KEEP_HOURS="decisions=2;sessions=24"
    # (see services/records/retention.py).
    "keep_hours": env("KEEP_HOURS", cast={"value": float}, default={}),
}

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "dashboard.http.second_factor.OneDoorForPasswords",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
SOCIALACCOUNT_ADAPTER = "dashboard.sso.adapters.SignOnAdapter"
MFA_ADAPTER = "dashboard.sso.adapters.CodesAdapter"
MFA_TOTP_ISSUER = "Fumarole"
MFA_RECOVERY_CODE_DIGITS = 10
MFA_TOTP_TOLERANCE = 1  # codes before and after the one of this half minute: clocks differ
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_HANDLER = "dashboard.http.lockout.LockoutHandler"
AXES_CLIENT_IP_CALLABLE = "dashboard.http.lockout.address_of"
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = (
    False  # who tries on while locked does not make it longer
)
SIGN_IN_ADDRESS_LIMIT = 50  # wrong passwords from one address, whoever they were for
SIGN_IN_USER_LIMIT = 50  # wrong passwords for one account, wherever they came from
AXES_LOCKOUT_CALLABLE = "dashboard.http.sign_in.locked_out"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

SECURE_COOKIES = env.bool("SECURE_COOKIES", default=not (DEBUG or EMBEDDED))
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_COOKIES
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=False)
SECURE_HSTS_SECONDS = env.int("SECURE_HSTS_SECONDS", default=0 if EMBEDDED or DEBUG else 3600)
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.bool("SECURE_HSTS_INCLUDE_SUBDOMAINS", default=False)
SECURE_HSTS_PRELOAD = env.bool("SECURE_HSTS_PRELOAD", default=False)


def trusted_proxies() -> list[str]:
    """Addresses and networks of proxies whose headers are believed (dashboard/http/proxies.py).

    BEHIND_PROXY, the setting before this one, is short for a proxy on this machine.
    """
    if env.bool("BEHIND_PROXY", default=False):
        this_machine = ["127.0.0.1", "::1"]
    else:
        this_machine = []
    given = []
    for entry in env.list("TRUSTED_PROXIES", default=this_machine):
        if entry.strip():
            given.append(entry.strip())
    for entry in given:
        require_network(entry)
    return given


def require_network(entry: str) -> None:
    if entry == "unix":  # a proxy that connects by a Unix socket
        return
    try:
        ipaddress.ip_network(entry)
    except ValueError as error:
        raise ImproperlyConfigured(
            f"TRUSTED_PROXIES: “{entry}” is neither an address nor a network ({error}). "
            "Give the addresses that your proxies connect from, such as 127.0.0.1,10.0.0.0/24."
        ) from None


TRUSTED_PROXIES = trusted_proxies()


def silenced_checks() -> list[str]:
    """Remarks of `check --deploy` that only the owner of the domain can answer."""
    about_other_hosts = ["security.W005", "security.W021"]
    if TRUSTED_PROXIES:
        return [*about_other_hosts, "security.W008"]  # the proxy sends plain HTTP to HTTPS
    return about_other_hosts


SILENCED_SYSTEM_CHECKS = silenced_checks()
SECURE_PROXY_SSL_HEADER = (
    "HTTP_X_FORWARDED_PROTO",
    "https",
)  # the middleware removes it where no trusted proxy has set it
WEB_THREADS = env.int(
    "WEB_THREADS", default=16
)  # requests that a web process works on at once; each has a database connection meanwhile
WEB_LONGEST_WAIT = env.float(
    "WEB_LONGEST_WAIT", default=3.0
)  # seconds; a request that would wait longer for its turn is refused
REQUEST_SECONDS = env.float(
    "REQUEST_SECONDS", default=10.0
)  # for a head, and between the pieces of a body
DATA_UPLOAD_MAX_NUMBER_FIELDS = 25_000  # one for each ticked queue of a large tree
DATA_UPLOAD_MAX_MEMORY_SIZE = env.int("MAX_BODY_BYTES", default=10 * 1024 * 1024)

# Requests a minute for one account, and for one address before sign-in; 0 lifts the limit.
API_RATE_PER_MINUTE = env.int("API_RATE_PER_MINUTE", default=12_000)
API_ANONYMOUS_RATE_PER_MINUTE = env.int("API_ANONYMOUS_RATE_PER_MINUTE", default=300)
CORS_ALLOWED_ORIGINS = env.list("CORS_ALLOWED_ORIGINS", default=[])
METRICS_TOKEN = env("METRICS_TOKEN", default="")  # when set, /metrics wants it as a bearer token
METRICS_PUBLIC = env.bool(
    "METRICS_PUBLIC", default=False
)  # else, without a token, only this machine may read them

REST_FRAMEWORK: dict[str, Any] = {
    # Ours alone: Django REST framework's own would take passwords with each request.
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "dashboard.api.framework.authentication.BearerAuthentication",
        "dashboard.api.framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "URL_FORMAT_OVERRIDE": "format",
    "NUM_PROXIES": 0,  # the middleware has decided already which proxies are believed
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Fumarole",
    "DESCRIPTION": (
        "Queues, jobs and the scheduler of a shared cluster. "
        "Sign in, or send a token as `Authorization: Bearer …`."
    ),
    "VERSION": "v1",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "SCHEMA_PATH_PREFIX_INSERT": "",
    "PREPROCESSING_HOOKS": ["dashboard.api.docs.only_ours"],
    "POSTPROCESSING_HOOKS": [],
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_INCLUDE_SCHEMA": False,
    "APPEND_COMPONENTS": {
        "securitySchemes": {
            "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token of /api/v1/tokens/ or of the account page.",
            },
            "browser": {
                "type": "apiKey",
                "in": "cookie",
                "name": "sessionid",
                "description": "A signed-in browser; writes need X-CSRFToken.",
            },
        }
    },
    "COMPONENT_SPLIT_REQUEST": False,
    "ENUM_ADD_EXPLICIT_BLANK_NULL_CHOICE": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {
        "deepLinking": True,
        "persistAuthorization": False,
        "tryItOutEnabled": False,
        "docExpansion": "none",
    },
}

ADMISSION_TOKEN = env("ADMISSION_TOKEN", default="")
ADMISSION_PUBLIC = env.bool(
    "ADMISSION_PUBLIC", default=False
)  # without a token, whoever reaches it may ask: most API servers cannot be given a token

LOG_FORMAT = env("LOG_FORMAT", default="plain")
if LOG_FORMAT not in ("plain", "json"):
    raise ImproperlyConfigured(f"LOG_FORMAT: “{LOG_FORMAT}” is not known. Give plain or json.")
# A line for each request, and for each session that decided something.
LOG_EACH = "INFO" if env.bool("LOG_EACH", default=LOG_FORMAT == "json") else "WARNING"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"()": "scheduler.logs.PlainLines"},
        "json": {"()": "scheduler.logs.JsonLines"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["console"], "level": env("LOG_LEVEL", default="INFO")},
    "loggers": {
        "axes": {"level": "WARNING"},
        "celery.beat": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "uvicorn": {"handlers": [], "propagate": True},  # in the same form as all other lines
        "uvicorn.access": {"level": "WARNING"},
        REQUESTS: {"level": LOG_EACH},
        SESSIONS: {"level": LOG_EACH},
    },
}
