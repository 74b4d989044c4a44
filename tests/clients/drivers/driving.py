"""What the drivers of the Python SDKs share: a wish a line in, what came of it a line out, as JSON."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

Wish = dict[str, Any]
Methods = dict[str, Callable[[Wish], Awaitable[Any]]]
Connect = Callable[[Wish], AbstractAsyncContextManager[tuple[Any, Methods]]]


def drive(connect: Connect) -> None:
    """Connect as each wish to connect says, and do what is wished for until the next one."""
    asyncio.run(_drive(connect))


async def _drive(connect: Connect) -> None:
    wish = await _next()
    while wish:
        following = None
        try:
            async with connect(wish) as (told, methods):
                _tell(told)
                while (following := await _next()) and following["do"] != "connect":
                    await _do(methods[following["do"]], following)
        except BaseExceptionGroup as group:
            _tell(_failure(group))
        except Exception as error:  # noqa: BLE001 - what a client raises is what the test looks at
            _tell(_failure(error))
        wish = following or await _next()


async def _do(method: Callable[[Wish], Awaitable[Any]], wish: Wish) -> None:
    try:
        _tell(await method(wish))
    except Exception as error:  # noqa: BLE001 - likewise
        _tell(_failure(error))


async def _next() -> Wish | None:
    line = await asyncio.to_thread(sys.stdin.buffer.readline)
    return json.loads(line) if line else None


def _failure(error: BaseException) -> Wish:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    of_the_protocol = getattr(error, "error", None)
    return {"failed": str(error), "code": getattr(of_the_protocol, "code", None)}


def _tell(told: Any) -> None:
    if hasattr(told, "model_dump"):
        told = told.model_dump(mode="json", by_alias=True, exclude_none=True)
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
