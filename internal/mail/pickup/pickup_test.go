package pickup

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/spool"
)

// store keeps messages, each key once.
type store struct {
	ids  map[string]int64
	got  []message.Envelope
	text []string
	err  error
	// isAnswerLost has a stored message reported as not stored.
	isAnswerLost bool
}

func (s *store) Accept(envelope message.Envelope, body *spool.Body) (int64, error) {
	if s.err != nil {
		return 0, s.err
	}
	if id, isKnown := s.ids[envelope.IdempotencyKey]; isKnown {
		return id, nil
	}
	text, err := io.ReadAll(body.Reader())
	if err != nil {
		return 0, err
	}
	s.got, s.text = append(s.got, envelope), append(s.text, string(text))
	s.ids[envelope.IdempotencyKey] = int64(len(s.got))
	if s.isAnswerLost {
		return 0, errors.New("the connection was cut")
	}
	return int64(len(s.got)), nil
}

func newFolder(t *testing.T, isReplay bool) (*Folder, *store) {
	t.Helper()
	s := &store{ids: map[string]int64{}}
	path := t.TempDir()
	f := &Folder{
		Path: path, Open: func() (*os.Root, error) { return os.OpenRoot(path) }, IsReplay: isReplay, FQDN: "mx.example.com", Accepter: s, Spool: spool.New(t.TempDir(), 1000, 10_000),
		Log: slog.New(slog.DiscardHandler),
	}
	f.setDefaults()
	return f, s
}

func (f *Folder) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.Path, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (f *Folder) opened(t *testing.T) files {
	t.Helper()
	box, err := openFiles(f.Open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(box.close)
	return box
}

func (f *Folder) poll(t *testing.T) {
	t.Helper()
	if err := f.once(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (f *Folder) files(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		stem, ending := strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name())), filepath.Ext(entry.Name())
		names = append(names, mark.ReplaceAllString(clash.ReplaceAllString(stem, "~"), "~")+ending)
	}
	return names
}

func TestFileIsSubmittedAndDeleted(t *testing.T) {
	t.Parallel()
	f, s := newFolder(t, false)
	f.put(t, "a.eml", "From: Ann <ann@example.com>\nTo: Bob <bob@example.net>, \"x, y\" <c@example.net>\nBcc: eve@example.net\nCc: BOB <bob@example.net>\nSubject: hi\n"+
		"X-Parley-Organization-Scl: -1\nX-Folded: a\n b\n\none\r\ntwo\rthree\n.\nend")
	f.put(t, "b.txt", "not ours")
	f.poll(t)
	if len(s.got) != 1 {
		t.Fatalf("%d messages were submitted", len(s.got))
	}
	e := s.got[0]
	if e.Sender != "ann@example.com" || fmt.Sprint(e.Recipients) != "[{bob@example.net  } {c@example.net  } {eve@example.net  }]" || e.Subject != "hi" ||
		e.Source != "PICKUP" || e.Directionality != message.Originating || e.HeaderMessageID == "" || e.IsUTF8 {
		t.Errorf("the envelope is %+v", e)
	}
	header, body, _ := strings.Cut(s.text[0], "\r\n\r\n")
	if body != "one\r\ntwo\r\nthree\r\n.\r\nend" || strings.Contains(header, "Bcc") || strings.Contains(header, "Organization") ||
		!strings.HasPrefix(header, "Received: by mx.example.com with pickup\r\n\tid ") || !strings.Contains(header, "\r\nX-Folded: a\r\n b\r\n") ||
		!strings.Contains(header, "\r\nDate: ") {
		t.Errorf("the message is %q", s.text[0])
	}
	if got := f.files(t); !slices.Equal(got, []string{"b.txt"}) {
		t.Errorf("left is %q", got)
	}
}

func TestFileThatIsNoMessageIsSetAside(t *testing.T) {
	t.Parallel()
	f, s := newFolder(t, false)
	f.HeaderBytes, f.Recipients, f.MessageBytes = 500, 3, 2000
	for name, text := range map[string]string{
		"empty": "", "nobody": "From: a@b\n\nx", "noauthor": "To: a@b\n\nx", "authors": "From: a@b, c@d\nTo: a@b\n\nx", "senders": "From: a@b\nSender: a@b, c@d\nTo: a@b\n\nx",
		"broken": "From: a@b\nTo: a@b c\n\nx", "header": "From: a@b\nTo: a@b\nX: " + strings.Repeat("x", 600) + "\n\nx",
		"injected": "From: a@b\nTo: \"a\r\nRCPT TO:<x\"@b\n\nx",
	} {
		f.put(t, name+".eml", text)
	}
	f.put(t, "good.EML", "From: a@b, c@d\nSender: c@d\nBcc: a@b\n\nx")
	for range 2 {
		f.poll(t)
	}
	files := f.files(t)
	if len(files) != 8 || slices.ContainsFunc(files, func(name string) bool { return !strings.HasSuffix(name, ".bad") }) {
		t.Errorf("left is %q", files)
	}
	if len(s.got) != 1 || s.got[0].Sender != "c@d" || !strings.Contains(s.text[0], "To: undisclosed-recipients:;\r\n") {
		t.Errorf("submitted was %+v", s.got)
	}
}

// A file with more than is taken is a message all the same, whose sender gets a report; without a sender there is nobody to report to.
func TestFileThatCannotBeDeliveredIsReportedAndDeleted(t *testing.T) {
	t.Parallel()
	large := "\n\n" + strings.Repeat("x", 2000)
	for _, c := range []struct {
		name, text   string
		isReplay     bool
		want, left   string
		isForbidding bool
		header       int
	}{
		{name: "recipients", text: "From: a@b\nTo: a@b,b@b,c@b,d@b\n\nx", want: "a@b 4 5.5.3 the message has 4 recipients, at most 3 are taken  x"},
		{name: "size", text: "From: a@b\nTo: c@d" + large, want: "a@b 1 5.3.4 the message has 2019 bytes, at most 2000 are taken HDRS "},
		{name: "replayed", text: "X-Sender: <a@b>\nX-Receiver: <c@d>\nX: y" + large, isReplay: true, want: "a@b 1 5.3.4 the message has 2040 bytes, at most 2000 are taken HDRS "},
		{name: "null sender", text: "X-Sender: <>\nX-Receiver: <c@d>\nX: y" + large, isReplay: true, left: "a.bad"},
		{name: "a long line", text: "From: a@b\nTo: c@d\n\n" + strings.Repeat("z", 999), want: "a@b 1 5.6.0 a line of the message has 999 bytes, and may have 998 HDRS "},
		{name: "a line that fits", text: "From: a@b\nTo: c@d\n\n" + strings.Repeat("z", 998), want: "a@b 1    " + strings.Repeat("z", 998)},
		{name: "a long line, replayed", text: "X-Sender: <a@b>\nX-Receiver: <c@d>\nX: y\n\n" + strings.Repeat("z", 999), isReplay: true, want: "a@b 1 5.6.0 a line of the message has 999 bytes, and may have 998 HDRS "},
		{name: "a long line of the header", text: "From: a@b\nTo: c@d\nX: " + strings.Repeat("z", 996) + "\n\nx", header: 2000, left: "a.bad"},
		{name: "refused by the store", text: "From: a@b\nTo: c@d\n\nx", isForbidding: true, left: "a.bad"},
	} {
		f, s := newFolder(t, c.isReplay)
		f.HeaderBytes, f.MessageBytes = max(500, c.header), 2000
		if !c.isReplay {
			f.Recipients = 3
		}
		if c.isForbidding {
			s.err = errors.New("check violated")
			f.IsRefusal = func(err error) bool { return errors.Is(err, s.err) }
		}
		f.put(t, "a.eml", c.text)
		f.poll(t)
		got := ""
		for i, e := range s.got {
			_, body, _ := strings.Cut(s.text[i], "\r\n\r\n")
			got += fmt.Sprint(e.Sender, " ", len(e.Recipients), " ", e.Refusal.Status, " ", e.Refusal.Text, " ", e.Return, " ", body)
		}
		if left := strings.Join(f.files(t), " "); got != c.want || left != c.left {
			t.Errorf("%s: submitted %q, left %q", c.name, got, left)
		}
	}
}

func TestFilesWaitWhileTheStoreIsAwayOrUnderPressure(t *testing.T) {
	t.Parallel()
	f, s := newFolder(t, false)
	f.PerMinute = 3
	for i := range 5 {
		f.put(t, fmt.Sprintf("%d.eml", i), fmt.Sprintf("From: a@b\nTo: c@d\n\n%d", i))
	}
	s.err = errors.New("away")
	f.poll(t)
	if got := f.files(t); len(got) != 5 || got[0] != "0~.tmp" || got[1] != "1.eml" {
		t.Errorf("left is %q", got)
	}
	s.err = nil
	f.IsRejected = func() bool { return true }
	f.poll(t)
	f.IsRejected = nil
	f.poll(t)
	if len(s.got) != 2 { // one of three was the attempt that failed
		t.Errorf("%d messages were submitted in the first minute", len(s.got))
	}
	f.minute = f.minute.Add(-time.Hour)
	f.poll(t)
	if len(s.got) != 5 {
		t.Errorf("%d messages were submitted", len(s.got))
	}
}

// Others can put something else in the place of a name at any moment: also behind the scan of the folder, as take and open have it here.
func TestNothingIsReadThatIsNoFileOfTheFolder(t *testing.T) {
	t.Parallel()
	f, s := newFolder(t, false)
	const text = "From: a@b\nTo: c@d\n\nsecret"
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f.put(t, "inner.txt", text)
	in := func(name string) string { return filepath.Join(f.Path, name) }
	if err := errors.Join(
		os.Symlink(secret, in("a.eml")), os.Symlink("inner.txt", in("b.eml")), os.Symlink(outside, in("c")), os.Link(secret, in("d.eml")),
		syscall.Mkfifo(in("e.eml"), 0o600), os.Mkdir(in("f.eml"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	before := f.files(t)
	if f.poll(t); len(s.got) != 0 || !slices.Equal(f.files(t), before) {
		t.Errorf("%d messages were submitted, left is %q", len(s.got), f.files(t))
	}
	box := f.opened(t)
	for _, name := range []string{"a.eml", "b.eml", "c/secret", "d.eml", "e.eml", "f.eml", "../" + filepath.Base(outside) + "/secret"} {
		if file, _, err := box.open(name); err == nil {
			t.Errorf("%s is opened", name)
			_ = file.Close()
		}
	}
	for _, name := range []string{"a.eml", "b.eml", "d.eml", "e.eml"} {
		if isDone := f.take(box, name); !isDone {
			t.Errorf("%s keeps others waiting", name)
		}
	}
	if want := []string{"a.bad", "b.bad", "c", "d.bad", "e.bad", "f.eml", "inner.txt"}; len(s.got) != 0 || !slices.Equal(f.files(t), want) {
		t.Errorf("%d messages were submitted, left is %q", len(s.got), f.files(t))
	}
}

func TestFileIsReplayedWithItsEnvelope(t *testing.T) {
	t.Parallel()
	f, s := newFolder(t, true)
	f.put(t, "a.eml", "X-Sender: <n@b> BODY=8bitmime RET=hdrs ENVID=e+2B+3D+201 auth=<x> xverp\nX-Receiver: <a@b> NOTIFY=NEVER ORcpt=c+2Bd@d\nX-Receiver: <e@f> ORCPT=utf-8;b\\x{FC}\\x{2B}ü@f\nX-HeloDomain: h\n"+
		"X-SourceIPAddress: 192.0.2.1\nX-CreatedBy: Parley\nX-EndOfInjectedXHeaders: 1\nX-Sender: kept\nFrom: g@h\nX-Parley-Organization-Scl: -1\n\nx\n")
	f.put(t, "b.eml", "X-Receiver: <a@b> ORCPT=rfc822;\"a+20b\"@c\nX-Sender: <> SMTPUTF8\nX-CreatedBy: somebody\nTo: nobody@x\nX-Parley-Organization-Scl: -1\n\nx\n")
	for name, text := range map[string]string{
		"none": "From: a@b\nTo: c@d\n\nx", "two": "X-Sender: <a@b>\nX-Sender: <a@b>\nX-Receiver: <a@b>\n\nx", "no receiver": "X-Sender: <a@b>\n\nx",
		"null": "X-Sender: <a@b>\nX-Receiver: <>\n\nx", "notify": "X-Sender: <a@b>\nX-Receiver: <a@b> NOTIFY=SOMETIMES\n\nx", "late": "From: x\nX-Sender: <a@b>\nX-Receiver: <a@b>\n\nx",
		"parameter": "X-Sender: <a@b> FOO=1\nX-Receiver: <a@b>\n\nx", "IP": "X-Sender: <a@b>\nX-SourceIPAddress: x\nX-Receiver: <a@b>\n\nx",
		"paths of +": "X-Sender: <a+x@b> XVERP\nX-Receiver: <a@b>\n\nx", "paths of none": "X-Sender: <> XVERP\nX-Receiver: <a@b>\n\nx",
		"paths of long": "X-Sender: <" + strings.Repeat("x", 59) + "@b> XVERP\nX-Receiver: <a@b>\n\nx", "paths of quoted": "X-Sender: <\"a b\"@b> XVERP\nX-Receiver: <a@b>\n\nx",
	} {
		f.put(t, name+".eml", text)
	}
	malformed := []string{
		"ENVID=", "ENVID=a=b", "ENVID=a+", "ENVID=a+2", "ENVID=a+2b", "ENVID=a+0A", "ENVID=a+C3+BC", "ENVID=ü",
		"ORCPT=", "ORCPT=rfc822;", "ORCPT=;a@b", "ORCPT=rfc822;a+b@c", "ORCPT=rfc822;ü@c", "ORCPT=a+b@c", `ORCPT=utf-8;a\b@c`, "ORCPT=utf-8;a+20b@c",
		`ORCPT=utf-8;\x{0A}@c`, `ORCPT=utf-8;\x{41}@c`, `ORCPT=utf-8;\x{fc}@c`, `ORCPT=utf-8;\x{D800}@c`, `ORCPT=utf-8;\x{110000}@c`, `ORCPT=utf-8;\x{0FC}@c`,
	}
	for i, parameter := range malformed {
		sender, receiver := "", ""
		if strings.HasPrefix(parameter, "ENVID") {
			sender = " " + parameter
		} else {
			receiver = " " + parameter
		}
		f.put(t, fmt.Sprintf("malformed%d.eml", i), "X-Sender: <a@b>"+sender+"\nX-Receiver: <a@b>"+receiver+"\n\nx")
	}
	reasons := 0
	f.Bad = func(_ string, reason error) {
		if name, _, _ := strings.Cut(reason.Error(), ":"); strings.Contains(reason.Error(), ": the parameter ENVID: ") && name == "field X-Sender" ||
			strings.Contains(reason.Error(), ": the parameter ORCPT: ") && name == "field X-Receiver" {
			reasons++
		}
	}
	f.poll(t)
	if reasons != len(malformed) {
		t.Errorf("%d files of %d were set aside for a parameter that is malformed", reasons, len(malformed))
	}
	if len(s.got) != 2 || len(f.files(t)) != 12+len(malformed) {
		t.Fatalf("submitted were %+v, left is %q", s.got, f.files(t))
	}
	e := s.got[0]
	if e.Sender != "n@b" || s.got[1].Sender != "" || e.Return != "HDRS" || !e.HasVERP || s.got[1].HasVERP || e.EnvelopeID != "e+= 1" || e.IsUTF8 || e.BodyType != "8BITMIME" || e.Helo != "h" || e.Peer.String() != "192.0.2.1" ||
		fmt.Sprint(e.Recipients) != "[{a@b rfc822;c+d@d NEVER} {e@f utf-8;bü+ü@f }]" || e.Source != "REPLAY" {
		t.Errorf("the envelope is %+v", e)
	}
	if e := s.got[1]; fmt.Sprint(e.Recipients) != `[{a@b rfc822;"a b"@c }]` || !e.IsUTF8 {
		t.Errorf("the envelope is %+v", e)
	}
	if _, text, _ := strings.Cut(s.text[0], "+0000"); !strings.HasSuffix(text, "X-Sender: kept\r\nFrom: g@h\r\nX-Parley-Organization-Scl: -1\r\n\r\nx\r\n") {
		t.Errorf("the message is %q", s.text[0])
	}
	if strings.Contains(s.text[1], "Organization") || !strings.Contains(s.text[1], "To: nobody@x") {
		t.Errorf("the message is %q", s.text[1])
	}
}

func FuzzFile(f *testing.F) {
	f.Add("From: a@b\nTo: c@d\n\nx", false)
	f.Add("X-Sender: <a@b> RET=FULL ENVID=a+20b\nX-Receiver: <c@d> NOTIFY=NEVER ORCPT=utf-8;\\x{FC}@d\nSubject: x\n\nbody\r.\r\n", true)
	kept := spool.New(f.TempDir(), 1<<20, 1<<30)
	f.Fuzz(func(t *testing.T, text string, isReplay bool) {
		folder := &Folder{IsReplay: isReplay, FQDN: "mx"}
		folder.setDefaults()
		body := kept.Open()
		defer func() { _ = body.Close() }()
		header, _, err := folder.read(strings.NewReader(text), body)
		if err != nil {
			return
		}
		envelope, header, err := folder.envelope(header)
		if err != nil {
			return
		}
		for _, recipient := range append(envelope.Recipients, message.Recipient{Address: envelope.Sender}) {
			if strings.ContainsAny(recipient.Address+recipient.Notify+recipient.Original+envelope.EnvelopeID, "\r\n\x00") {
				t.Errorf("%q: the envelope is %+v", text, envelope)
			}
		}
		if header.HasBareLineEnd() || len(envelope.Recipients) == 0 {
			t.Errorf("%q: the header is %q", text, header.Bytes())
		}
	})
}
