#!/usr/bin/env bash
# hl7 0.4.5 (PyPI), Python 3.11: unescape does not undo escape of the same message for letters from U+0100 on. escape writes the code point in
# hexadecimal, three or four digits; unescape takes two digits for a letter each. Letters up to U+00FF come through, so a test with a German
# name passes and a Polish one is changed in silence.
#
# Seen:
#   Größe -> Gr\Xf6\\Xdf\e -> 'Gr\xf6\xdfe': the same
#   Kłos -> K\X142\os -> 'K\x14\x02os': differs
#   10 € -> 10 \X20ac\ -> '10  \xac': differs
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check hl7==0.4.5
cat > read.py <<'END'
import hl7

message = hl7.parse("MSH|^~\\&|A|B|C|D|20260101||ADT^A01|1|P|2.5\r")
for text in ("Größe", "Kłos", "10 €"):
    escaped = message.escape(text)
    back = message.unescape(escaped)
    print(f"{text} -> {escaped} -> {ascii(back)}: {'the same' if back == text else 'differs'}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
Größe -> Gr\Xf6\\Xdf\e -> 'Gr\xf6\xdfe': the same
Kłos -> K\X142\os -> 'K\x14\x02os': differs
10 € -> 10 \X20ac\ -> '10  \xac': differs
END
