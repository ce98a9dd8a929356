"""Signatures of Standard Webhooks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from typing import Iterable, Mapping, Union


class BadSignature(Exception):
    """The message is not signed with any of the secrets, or is too old."""


def verify_webhook(body: bytes, headers: Mapping[str, str], secret: Union[str, Iterable[str]], tolerance: float = 300) -> None:
    """Raises BadSignature unless one of the secrets ("whsec_…") signed the message.

    body is the bytes as received. tolerance is how many seconds the sender's clock may be away
    from ours. The sender repeats messages: keep webhook-id, and act once.
    """
    if not isinstance(body, (bytes, bytearray)):
        raise TypeError("body: give the bytes as received, before decoding")
    secrets = [secret] if isinstance(secret, str) else list(secret)
    given = {name.lower(): value for name, value in headers.items()}
    try:
        name, sent = given["webhook-id"], given["webhook-timestamp"]
        signatures = [s.encode() for s in given["webhook-signature"].split()]
        away = abs(time.time() - int(sent))
        message = f"{name}.{sent}.".encode() + bytes(body)
    except (KeyError, ValueError) as e:
        raise BadSignature("a header is missing or not valid") from e
    if not away <= tolerance:
        raise BadSignature("the message is too old, or from the future")
    valid = False
    for one in secrets:  # all are compared, so that the time does not show which one fits
        try:
            key = base64.b64decode(one[6:] if one.startswith("whsec_") else one, validate=True)
        except binascii.Error:
            raise ValueError("secret: want whsec_ and base64") from None
        if len(key) < 16:
            raise ValueError("secret: it is too short")
        want = b"v1," + base64.b64encode(hmac.new(key, message, hashlib.sha256).digest())
        for signature in signatures:
            valid |= hmac.compare_digest(want, signature)
    if not valid:
        raise BadSignature("no signature fits")
