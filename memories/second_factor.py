"""The second factor of a person's sign-in: an authenticator app (TOTP, RFC 6238), and recovery codes for its loss."""

from base64 import b32encode
from binascii import unhexlify

from django.contrib.auth.models import User
from django.db import transaction
from django_otp import verify_token
from django_otp.oath import TOTP
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice, default_key

RECOVERY_CODES = 10
_DIGITS = 6
_TOLERANCE = 1  # steps of 30 seconds by which clocks may differ


def device_of(user: User) -> TOTPDevice | None:
    """The person's authenticator, if it is switched on."""
    return TOTPDevice.objects.filter(user_id=user.pk, confirmed=True).order_by("pk").first()


def new_secret() -> str:
    """A random secret, as hexadecimal digits."""
    return str(default_key())


def spelled(secret: str) -> str:
    """The secret as a person types it into an app: base32 in groups of four."""
    text = b32encode(unhexlify(secret)).decode("ascii")
    return " ".join(text[start : start + 4] for start in range(0, len(text), 4))


def link(user: User, secret: str) -> str:
    """The otpauth address that apps on the same device open, and that the QR code holds."""
    return str(TOTPDevice(user=user, key=secret).config_url)


def is_right(user: User, code: str) -> bool:
    """Whether the code is one of the person's app or an unused recovery code, which is used up by that.

    Each is throttled by itself: after every wrong code the wait doubles.
    """
    code = code.replace(" ", "").replace("-", "").lower()
    device = device_of(user)
    if device is None or not code:  # who sends none has not tried one, so nothing is throttled
        return False
    if len(code) == _DIGITS and code.isascii() and code.isdigit():
        return verify_token(user, device.persistent_id, code) is not None
    spare = StaticDevice.objects.filter(user_id=user.pk, confirmed=True)
    return any(verify_token(user, each.persistent_id, code) is not None for each in spare)


def switch_on(user: User, secret: str, code: str) -> tuple[TOTPDevice, list[str]] | None:
    """The new authenticator and the recovery codes; None when the code does not prove that an app has the secret."""
    totp = TOTP(unhexlify(secret))
    code = code.replace(" ", "")
    if not (code.isascii() and code.isdigit() and totp.verify(int(code), _TOLERANCE)):
        return None
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        if device_of(user) is not None:
            return None
        # The code that proved it is used up: nobody who saw it can sign in with it.
        device = TOTPDevice.objects.create(user=user, name="app", key=secret, drift=totp.drift, last_t=totp.t())
        spare = StaticDevice.objects.create(user=user, name="recovery")
        codes = [StaticToken.random_token() for _code in range(RECOVERY_CODES)]
        StaticToken.objects.bulk_create([StaticToken(device=spare, token=each) for each in codes])
    return device, codes


def switch_off(user: User) -> bool:
    """Remove the authenticator and the recovery codes; returns whether there was one."""
    with transaction.atomic():
        removed, _tables = TOTPDevice.objects.filter(user_id=user.pk).delete()
        StaticDevice.objects.filter(user_id=user.pk).delete()
    return bool(removed)


def recovery_codes_left(user: User) -> int:
    """How many recovery codes are unused."""
    return int(StaticToken.objects.filter(device__user_id=user.pk, device__confirmed=True).count())
