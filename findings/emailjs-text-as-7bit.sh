#!/usr/bin/env bash
# emailjs 5.0.3 (npm, a client of SMTP), Node 20: a text goes out as it was given, under Content-Transfer-Encoding 7bit, which stands for
# ASCII in lines of at most 998 octets (RFC 2045, 2.7 and 6.2; RFC 5322, 2.1.1). Letters beyond ASCII and longer lines leave as they are. A
# host that converts for the next one goes by the label, and so passes raw octets on or changes the letters, and a signature over the body
# fails where a line is cut. Of two alternatives the first is left out. No error is set. nodemailer 7.0.13 encodes both texts. Parley
# refuses the long line by SMTP (554 5.6.0). A program that sends to it builds the octets with the other package.
#
# Seen:
#   plain
#     emailjs: 7bit, 0 octets above 127, longest line within 998
#     nodemailer: 7bit, 0 octets above 127, longest line within 998
#   letters
#     emailjs: 7bit, 4 octets above 127, longest line within 998
#     nodemailer: quoted-printable, 0 octets above 127, longest line within 998
#   long
#     emailjs: 7bit, 0 octets above 127, longest line above 998
#     nodemailer: quoted-printable, 0 octets above 127, longest line within 998
#   alternatives in emailjs: text/plain text/calendar
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts emailjs@5.0.3 nodemailer@7.0.13
cat > read.mjs <<'END'
import { Message } from 'emailjs'
import nodemailer from 'nodemailer'

const from = 'kim@example.net'
const to = 'ada@example.net'
const transport = nodemailer.createTransport({ streamTransport: true, buffer: true })

function about(name, octets) {
  const label = octets.toString('latin1').match(/^Content-Transfer-Encoding: *(.*?)\r?$/im)[1]
  const longest = Math.max(...octets.toString('latin1').split('\r\n').map((line) => line.length))
  console.log(`  ${name}: ${label}, ${octets.filter((octet) => octet > 127).length} octets above 127, longest line ` +
    (longest > 998 ? 'above 998' : 'within 998'))
}

for (const [name, text] of [['plain', 'Hello'], ['letters', 'Grüße'], ['long', 'x'.repeat(1200)]]) {
  console.log(name)
  about('emailjs', Buffer.from(await new Message({ from, to, text }).readAsync()))
  about('nodemailer', (await transport.sendMail({ from, to, text })).message)
}
const attachment = ['text/html', 'text/calendar'].map((type) => ({ data: 'x', type, alternative: true }))
const message = await new Message({ from, to, text: 'x', attachment }).readAsync()
console.log(`alternatives in emailjs: ${message.match(/text\/\w+/g).join(' ')}`)
END
node read.mjs | tee seen
diff seen - <<'END'
plain
  emailjs: 7bit, 0 octets above 127, longest line within 998
  nodemailer: 7bit, 0 octets above 127, longest line within 998
letters
  emailjs: 7bit, 4 octets above 127, longest line within 998
  nodemailer: quoted-printable, 0 octets above 127, longest line within 998
long
  emailjs: 7bit, 0 octets above 127, longest line above 998
  nodemailer: quoted-printable, 0 octets above 127, longest line within 998
alternatives in emailjs: text/plain text/calendar
END
