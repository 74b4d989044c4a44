"""What every answer of the server carries."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

_NOT_NEEDED = ("camera", "display-capture", "geolocation", "microphone", "midi", "payment", "usb")
_PERMISSIONS_POLICY = ", ".join(f"{feature}=()" for feature in _NOT_NEEDED)


def permissions_policy(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """No page of ours uses the machine's devices, so no script in it may."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response["Permissions-Policy"] = _PERMISSIONS_POLICY
        return response

    return answer
