"""Verifies each signature of a message with dkimpy: verify.py MESSAGE RECORDS, where RECORDS is JSON of names and TXT records.

Prints one line for each signature, as they stand in the message: its domain, its selector, and True or False.
"""
import json
import sys

import dkim

with open(sys.argv[1], "rb") as file:
    message = file.read()
with open(sys.argv[2], encoding="utf-8") as file:
    records = json.load(file)


def lookup(name, timeout=5):
    return records[name.decode("ascii").rstrip(".")].encode("ascii")


verifier = dkim.DKIM(message)
signatures = [value for name, value in verifier.headers if name.lower() == b"dkim-signature"]
for number, value in enumerate(signatures):
    tags = dkim.util.parse_tag_value(value)
    is_valid = verifier.verify(idx=number, dnsfunc=lookup)
    print(tags[b"d"].decode(), tags[b"s"].decode(), is_valid)
