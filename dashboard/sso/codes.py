"""Second factors of local accounts: codes of an app, and recovery codes for when it is lost.

Each is in allauth's tables, and `SecondFactor` says that there is one. Both are written together.
"""

from __future__ import annotations

import secrets
from typing import Any

from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import (
    TOTP,
    format_hotp_value,
    generate_totp_secret,
    hotp_value,
    yield_hotp_counters_from_time,
)
from allauth.mfa.utils import decrypt
from cryptography.fernet import InvalidToken
from django.db import transaction

from scheduler.models import SecondFactor
from scheduler.services.accounts.actors import Actor
from scheduler.services.records import audit


def new_secret() -> str:
    return str(generate_totp_secret())


def picture_of(user: Any, secret: str) -> str:
    """For the camera of a phone, as SVG."""
    adapter = get_adapter()
    return str(adapter.build_totp_svg(adapter.build_totp_url(user, secret)))


@transaction.atomic
def add_second_factor(user: Any, secret: str, code: str, *, by: Actor) -> list[str] | None:
    """From now on sign-in asks for a code. The recovery codes, or None where the code is wrong.

    An account that has one already gets no other: first it is removed, which takes a code.
    """
    counter = _counter_of(secret, _plain(code))
    if not counter or SecondFactor.objects.filter(user=user).exists():
        return None
    Authenticator.objects.filter(user=user).delete()
    TOTP.activate(user, secret)
    SecondFactor.objects.create(user=user, last_counter=counter)
    audit.record(by, "AddSecondFactor", "User", user.get_username())
    return _codes_of(RecoveryCodes.activate(user))


def _codes_of(recovery: RecoveryCodes) -> list[str]:
    return [str(code) for code in recovery.generate_codes()]


def _plain(code: str) -> str:
    """As people type them: 123 456."""
    return "".join(code.split())


def _counter_of(secret: str, code: str) -> int:
    """Which of the codes of these minutes it is; 0 for none."""
    for counter in yield_hotp_counters_from_time():
        right = format_hotp_value(hotp_value(secret, counter))
        if secrets.compare_digest(right.encode(), code.encode()):
            return int(counter)
    return 0


@transaction.atomic
def is_right_code(user: Any, code: str) -> bool:
    """Of the app or of the recovery codes. Each counts only once, in whichever process."""
    given = _plain(code)
    factor = SecondFactor.objects.select_for_update().filter(user=user).first()
    if factor is None or not given:
        return False
    for authenticator in Authenticator.objects.filter(user=user):
        if _accepts(authenticator, factor, given):
            authenticator.refresh_from_db()
            authenticator.record_usage()
            return True
    return False


def _accepts(authenticator: Authenticator, factor: SecondFactor, code: str) -> bool:
    """Secrets that cannot be read, because the site's key was changed, accept nothing."""
    try:
        if authenticator.type != Authenticator.Type.TOTP:
            return bool(RecoveryCodes(authenticator).validate_code(code))
        counter = _counter_of(decrypt(authenticator.data["secret"]), code)
    except InvalidToken:
        return False
    if counter <= factor.last_counter:
        return False
    factor.last_counter = counter
    factor.save(update_fields=["last_counter"])
    return True


@transaction.atomic
def renew_recovery_codes(user: Any, *, by: Actor) -> list[str]:
    """The old ones end."""
    Authenticator.objects.filter(user=user, type=Authenticator.Type.RECOVERY_CODES).delete()
    audit.record(by, "NewRecoveryCodes", "User", user.get_username())
    return _codes_of(RecoveryCodes.activate(user))


def unused_recovery_codes(user: Any) -> int:
    """How many are left; 0 where they cannot be read."""
    found = Authenticator.objects.filter(user=user, type=Authenticator.Type.RECOVERY_CODES).first()
    try:
        return len(RecoveryCodes(found).get_unused_codes()) if found else 0
    except InvalidToken:
        return 0


def forget_secrets(instance: SecondFactor, **_signal: Any) -> None:
    """Whoever takes the second factor away, its secrets go with it."""
    Authenticator.objects.filter(user_id=instance.user_id).delete()
