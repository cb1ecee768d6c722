"""Stored answers, readable only with the question: an answer resembles the person who asked."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from countervail.ledger.store import digest

_NONCE, _MARK = 16, 16


def lock(key: bytes, request: bytes, answer: bytes) -> bytes:
    """The answer under a stream of bytes that follows from key, question and a nonce, with a mark of its own."""
    nonce = secrets.token_bytes(_NONCE)
    return nonce + digest(key, "answer", nonce, request, answer)[:_MARK] + _mixed(key, request, nonce, answer)


def unlock(key: bytes, request: bytes, stored: bytes) -> bytes | None:
    """The inverse of :func:`lock`; None where what is stored does not belong to the question."""
    nonce, mark, rest = stored[:_NONCE], stored[_NONCE : _NONCE + _MARK], stored[_NONCE + _MARK :]
    answer = _mixed(key, request, nonce, rest)
    return answer if hmac.compare_digest(digest(key, "answer", nonce, request, answer)[:_MARK], mark) else None


def _mixed(key: bytes, request: bytes, nonce: bytes, data: bytes) -> bytes:
    """Every bit turned, or not, by the stream; its own inverse."""
    stream = hashlib.shake_256(digest(key, "stream", nonce, request)).digest(len(data))
    return (int.from_bytes(data, "little") ^ int.from_bytes(stream, "little")).to_bytes(len(data), "little")
