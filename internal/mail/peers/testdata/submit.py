"""Submits three messages by smtplib: submit.py HOST PORT."""
import hashlib
import random
import smtplib
import sys
from email.message import EmailMessage

content = random.Random(7).randbytes(2_000_000)


def message(subject, to):
    m = EmailMessage()
    m["From"], m["To"], m["Subject"] = "Ann <ann@example.org>", to, subject
    m["X-Sum"] = hashlib.sha256(content).hexdigest()
    return m


with smtplib.SMTP(sys.argv[1], int(sys.argv[2]), timeout=30) as session:
    session.login("ann", "secret")

    with_attachment = message("attachment", "bob@example.org")
    with_attachment.set_content("Grüße\n..\n.\n", cte="8bit")
    with_attachment.add_alternative("<p>Grüße</p>", subtype="html")
    with_attachment.add_attachment(content, maintype="application", subtype="octet-stream", filename="größe.bin")
    session.send_message(with_attachment)

    utf8 = message("Grüße", "jürgen@example.org")
    utf8.set_content("hello\n")
    session.send_message(utf8)

    report = message("report", "bob@example.org")
    report.set_content("hello\n")
    session.send_message(report, mail_options=["RET=HDRS", "ENVID=order+2B7"], rcpt_options=["NOTIFY=SUCCESS,FAILURE", "ORCPT=rfc822;bob+2B7@example.org"])
