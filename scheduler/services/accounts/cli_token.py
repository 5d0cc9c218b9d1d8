"""The token of this machine's command line.

It is made when an installation starts for the first time, and kept in a file that only its owner
can read.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import get_user_model

from scheduler.domain.access import Scope
from scheduler.models import ApiToken
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.tokens import BadToken, create_token, revoke_token, token_user
from scheduler.supervisor.runtime import CLI_TOKEN_FILE, write_private

_NAME: Final = "vcctl on this machine"


def ensure_cli_token() -> None:
    """Whoever may read `var/` may read the database in it, so this gives nothing away.

    The key in the file stays while it is good.
    """
    path = Path(settings.VAR_DIR) / CLI_TOKEN_FILE
    user = _first_administrator()
    if user is None or _is_good(path):
        return
    for old in ApiToken.objects.filter(user=user, name=_token_name(), revoked_at=None):
        revoke_token(old, by=SYSTEM)
    write_private(path, create_token(user, _token_name(), [Scope.ADMIN], by=SYSTEM).secret)


def _token_name() -> str:
    return f"{_NAME} ({platform.node()[:60]})"


def _first_administrator() -> Any:
    return get_user_model().objects.filter(is_superuser=True, is_active=True).order_by("pk").first()


def _is_good(path: Path) -> bool:
    try:
        user, _ = token_user(path.read_text().strip())
    except (OSError, UnicodeDecodeError, BadToken):
        return False
    return bool(user.is_superuser)
