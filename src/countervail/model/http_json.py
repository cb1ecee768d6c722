"""Posting JSON: one deadline for a whole request, retries where they may help, and errors without what was sent."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from countervail.core.errors import RemoteModelError

LOCAL = ("localhost", "127.0.0.1", "::1")
_BUSY = (408, 425, 429, 502, 503, 504)  # statuses that may be others a moment later
_MOST = 1 << 28
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class FailedPost:
    """Why there is no answer, in our own words, and whether another attempt may help."""

    words: str
    again: bool = True


def post_json(
    url: str, data: Any, headers: Mapping[str, str], *, shown: str, timeout: float, retries: int, wait: float
) -> Any:
    """Post JSON and read JSON; where there is no answer in time, or the server is too busy, it is tried again."""
    body = json.dumps(data, allow_nan=False).encode()
    attempt = 1
    while isinstance(found := _post(url, body, headers, timeout), FailedPost) and found.again and attempt <= retries:
        time.sleep(wait * 2 ** (attempt - 1))
        attempt += 1
    if isinstance(found, bytes):
        return _read(found, shown)
    tried = f" ({attempt} attempts)" if attempt > 1 else ""
    raise RemoteModelError(f"The model at {shown} {found.words}{tried}. Is the address right, and does it run?")


def _post(url: str, body: bytes, headers: Mapping[str, str], timeout: float) -> bytes | FailedPost:
    late = FailedPost(f"did not answer within {timeout:g} seconds")
    end = time.monotonic() + timeout
    try:
        asked = Request(url, data=body, headers={**headers, "Content-Type": "application/json"}, method="POST")
        with _opener(url).open(asked, timeout=timeout) as response:
            answer = bytearray()
            # Each read has the whole time-out to itself: a server that sends a byte now and then needs a deadline.
            while part := response.read1(_CHUNK):
                answer += part
                if time.monotonic() > end:
                    return late
                if len(answer) > _MOST:
                    return FailedPost(f"answered with more than {_MOST:,} bytes", again=False)
            return bytes(answer)
    except HTTPError as error:
        with error:
            return FailedPost(f"answered with the HTTP status {error.code}", again=error.code in _BUSY)
    except TimeoutError:
        return late
    except URLError as error:
        timed_out = isinstance(error.reason, TimeoutError)
        return late if timed_out else FailedPost(f"cannot be reached ({type(error.reason).__name__})")
    except (OSError, HTTPException) as error:
        return FailedPost(f"broke the connection off ({type(error).__name__})")
    except ValueError:
        return FailedPost("cannot be asked, because the address or a header is not valid", again=False)


class NoRedirects(HTTPRedirectHandler):
    """Rows and headers go to the address that was given, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        """Stay."""


def _opener(url: str) -> OpenerDirector:
    # What stays on this machine needs no proxy that would see it.
    local = urlsplit(url).hostname in LOCAL
    return build_opener(NoRedirects, *([ProxyHandler({})] if local else []))


def _read(text: bytes, shown: str) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    raise RemoteModelError(f"The answer of the model at {shown} is no JSON.")
