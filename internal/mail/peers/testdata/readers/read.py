"""Reads each message of a folder by the standard library of Python, and prints what it has read, as JSON."""
import email
import email.policy
import json
import pathlib
import re
import sys
from datetime import timezone


def addresses(message, name):
    said = []
    for field in message.get_all(name, []):
        for one in field.addresses:
            said.append(f"{one.display_name} <{one.addr_spec}>" if one.display_name else one.addr_spec)
    return ", ".join(said)


def date(message):
    said = message["date"].datetime if message["date"] else None
    if said is None:
        return ""
    if said.tzinfo is None:  # an offset that is not known
        said = said.replace(tzinfo=timezone.utc)
    return said.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def ids(message, name):
    return " ".join(re.findall(r"<[^<>\s]+>", str(message[name] or "")))


def body(message, kind):
    part = message.get_body((kind,))
    return part, "" if part is None else part.get_content().replace("\r\n", "\n")


def leaves(message):
    if message.get_content_type() == "message/rfc822":
        yield message
    elif message.is_multipart():
        for part in message.iter_parts():
            yield from leaves(part)
    else:
        yield message


def attachments(message):
    bodies = [part for part in (message.get_body((kind,)) for kind in ("plain", "html")) if part is not None]
    said = []
    for part in leaves(message):
        if any(part is one for one in bodies):
            continue
        size = "" if part.get_content_type() == "message/rfc822" else f" {len(part.get_payload(decode=True) or b'')}"
        said.append(f"{part.get_content_type()} {part.get_filename() or '-'}{size}")
    return ", ".join(said)


def attempt(ask):
    try:
        return ask()
    except Exception as error:  # what the library cannot read
        return f"error {type(error).__name__}"


def read(path):
    message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    asked = {
        "subject": lambda: str(message["subject"] or ""),
        "date": lambda: date(message),
        "in_reply_to": lambda: ids(message, "in-reply-to"),
        "references": lambda: ids(message, "references"),
        "text": lambda: body(message, "plain")[1],
        "html": lambda: body(message, "html")[1],
        "attachments": lambda: attachments(message),
    }
    for field, name in {"from": "from", "to": "to", "cc": "cc", "reply_to": "reply-to"}.items():
        asked[field] = lambda name=name: addresses(message, name)
    return {field: attempt(ask) for field, ask in asked.items()}


# What is no character, and cannot be printed, is U+FFFD.
said = {path.stem: read(path) for path in sorted(pathlib.Path(sys.argv[1]).glob("*.eml"))}
version = f"{sys.version_info.major}.{sys.version_info.minor}"
print(re.sub(r"\\ud[c-f][0-9a-f]{2}", r"\\ufffd", json.dumps({"version": version, "messages": said}).replace("\\\\", "\\u005c")))
