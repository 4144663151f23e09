package receive_test

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/mail/receive"
)

const smtplib = `
import smtplib, ssl, sys
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
with smtplib.SMTP(sys.argv[1], int(sys.argv[2]), timeout=30) as s:
    s.starttls(context=context)
    s.login("ann", "secret")
    refused = s.sendmail("ann@example.com", ["x@example.net", "y@example.net"], "From: ann@example.com\nSubject: x\n\n.dot\n.\nlast", mail_options=["BODY=8BITMIME"], rcpt_options=["NOTIFY=FAILURE"])
    assert refused == {}, refused
    from email.message import EmailMessage
    m = EmailMessage()
    m["From"], m["To"], m["Subject"] = "ann@example.com", "ö@example.net", "ü"
    m.set_content("hello")
    s.send_message(m)
`

func TestPythonSends(t *testing.T) {
	t.Parallel()
	python := mailtest.Program(t, "python3", "PARLEY_TEST_REQUIRE_LANGUAGES")
	connector := submission()
	connector.TLS = receive.TLSRequired
	f := start(t, nil, connector)
	host, port, err := net.SplitHostPort(f.address)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), python, "-c", smtplib, host, port).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all := f.store.all()
	if len(all) != 2 || !strings.HasSuffix(all[0].text, "\r\n\r\n.dot\r\n.\r\nlast\r\n") || all[0].envelope.Recipients[1].Notify != "FAILURE" || !all[1].envelope.IsUTF8 {
		t.Errorf("taken was %+v", all)
	}
}

func TestSwaksSends(t *testing.T) {
	t.Parallel()
	swaks := mailtest.Program(t, "swaks", "PARLEY_TEST_REQUIRE_SWAKS")
	f := start(t, nil, internet())
	out, err := exec.CommandContext(t.Context(), swaks, "--server", f.address, "--tls", "--from", "a@example.net", "--to", "bob@example.com").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f.store.only(t)
}
