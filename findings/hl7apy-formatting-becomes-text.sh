#!/usr/bin/env bash
# hl7apy 1.3.5 (PyPI), Python 3.11: of a message that is read and written with nothing changed the escapes for a line break, an octet in hexadecimal and those of
# a site (HL7 version 2.5, 2.7) have their backslashes escaped. By the standard they are then text: the next reader shows \.br\ in place of a
# new line. Escapes of separators and of highlighting stay as they are. No error is set.
#
# Seen:
#   read:    5\F\6 \H\high\N\ one\.br\two \X41\
#   written: 5\F\6 \H\high\N\ one\E\.br\E\two \E\X41\E\
#   a message without these comes back as it was: True
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check hl7apy==1.3.5
cat > read.py <<'END'
from hl7apy.parser import parse_message

SEGMENTS = (
    "MSH|^~\\&|A|B|C|D|20260101||ORU^R01^ORU_R01|1|P|2.5",
    "PID|1||7||Lee^Kim",
    "OBR|1|||1^X",
    "OBX|1|FT|1^X||{}||||||F",
)


def written(text):
    return parse_message("\r".join(SEGMENTS).format(text)).to_er7().split("\r")[3].split("|")[5]


text = r"5\F\6 \H\high\N\ one\.br\two \X41\ "[:-1]
print("read:   ", text)
print("written:", written(text))
plain = r"5\F\6 \H\high\N\ "[:-1]
print("a message without these comes back as it was:", written(plain) == plain)
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
read:    5\F\6 \H\high\N\ one\.br\two \X41\
written: 5\F\6 \H\high\N\ one\E\.br\E\two \E\X41\E\
a message without these comes back as it was: True
END
