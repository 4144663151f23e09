#!/usr/bin/env bash
# pydifact 0.2.3 (PyPI), Python 3.11: an interchange of EDIFACT's syntax version 4 (ISO 9735:1998) is taken without an error and changed. The date
# of UNB has eight digits in that version and is written back with six, the century gone. A repetition, whose separator UNA names, is not
# split: it stays inside of one component.
#
# Seen:
#   read:    UNB+UNOD:4+SENDER+RECEIVER+20260101:1200+1'
#   written: UNB+UNOD:4+SENDER+RECEIVER+260101:1200+1'
#   RFF: [['ON', '1*ON', '2']]
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pydifact==0.2.3
cat > read.py <<'END'
import warnings

warnings.simplefilter("ignore")

from pydifact.segmentcollection import Interchange

unb = "UNB+UNOD:4+SENDER+RECEIVER+20260101:1200+1'"
text = "UNA:+.?*'" + unb + "UNH+1+ORDERS:D:96A:UN'RFF+ON:1*ON:2'UNT+3+1'UNZ+1+1'"
interchange = Interchange.from_str(text)
print("read:   ", unb)
print("written:", interchange.serialize().split("'")[1] + "'")
print("RFF:", next(s.elements for s in interchange.segments if s.tag == "RFF"))
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
read:    UNB+UNOD:4+SENDER+RECEIVER+20260101:1200+1'
written: UNB+UNOD:4+SENDER+RECEIVER+260101:1200+1'
RFF: [['ON', '1*ON', '2']]
END
