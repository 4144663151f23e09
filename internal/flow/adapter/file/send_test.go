package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// port is a port of tests that writes into a folder.
type port struct {
	adapter.Sender
	top, folder string
}

func newPort(t *testing.T, name, settings string) *port {
	t.Helper()
	p := &port{top: t.TempDir()}
	p.folder = filepath.Join(p.top, "out")
	if err := os.Mkdir(p.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	p.restart(t, name, settings)
	return p
}

// restart makes the sender anew, as another process does.
func (p *port) restart(t *testing.T, name, settings string) {
	t.Helper()
	made, err := newSender(adapter.Endpoint{
		Name: "ERP", Address: p.folder + "/" + name, Settings: json.RawMessage(settings),
		Permission: adapter.Permission{Folders: []string{p.top}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Sender = made
}

var came = time.Date(2026, 11, 28, 10, 35, 23, 456_000_000, time.UTC)

func message(id int64, body string) *adapter.Message {
	return &adapter.Message{
		ID: id, ReceivedAt: came, Size: int64(len(body)), Promoted: map[string]string{"SourceFileName": "in.xml"},
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil },
	}
}

func (p *port) send(t *testing.T, messages ...*adapter.Message) []error {
	t.Helper()
	var errs []error
	for _, d := range p.Send(t.Context(), messages) {
		errs = append(errs, d.Err)
	}
	return errs
}

func (p *port) sent(t *testing.T, messages ...*adapter.Message) {
	t.Helper()
	if err := errors.Join(p.send(t, messages...)...); err != nil {
		t.Fatal(err)
	}
}

// want compares the files of the folder, but for those of the adapter.
func (p *port) want(t *testing.T, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(p.folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(p.folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if body, is := want[entry.Name()]; strings.HasPrefix(entry.Name(), prefix+"appended-") {
			continue
		} else if !is || body != string(text) {
			t.Errorf("there is %s with %q", entry.Name(), text)
		}
		delete(want, entry.Name())
	}
	for name := range want {
		t.Errorf("there is no %s", name)
	}
}

func code(err error) string {
	f, is := errors.AsType[*adapter.Failure](err)
	if !is {
		return fmt.Sprint(err)
	}
	if f.Unreachable {
		return f.Code + ", unreachable"
	}
	if f.Permanent {
		return f.Code + ", permanent"
	}
	return f.Code
}

func TestMacrosStandForWhatTheMessageSays(t *testing.T) {
	t.Parallel()
	m := message(17, "x")
	m.ReceivedAt = came.In(time.FixedZone("elsewhere", 3600))
	m.Written = map[string]string{"urn:p#Party": "A/B"}
	_, seconds := m.ReceivedAt.Local().Zone()
	tz := fmt.Sprintf("%+d%02d", seconds/3600, seconds/60%60)
	for name, want := range map[string]string{
		"%MessageID%.xml": "17.xml", "o-%SourceFileName%": "o-in.xml", "%datetime%": "2026-11-28T103523",
		"%datetime_bts2000%": "202611281035234", "%time%": "103523", "100%%-%MessageID%": "100%-17", "%Party%": "A_B",
		"%datetime.tz%": m.ReceivedAt.Local().Format("2006-01-02T150405") + tz, "%time.tz%": m.ReceivedAt.Local().Format("150405") + tz,
	} {
		target, problems := targetOf("/out/"+name, sendSettings{Macros: map[string]string{"Party": "urn:p#Party"}})
		if problems != nil {
			t.Errorf("%s: %v", name, problems)
			continue
		}
		if got, err := target.Name(m); got != want || err != nil {
			t.Errorf("%s is %q and not %q, %v", name, got, want, err)
		}
	}
}

func TestNamesOfOthersLeadNowhere(t *testing.T) {
	t.Parallel()
	target, _ := targetOf("/out/%SourceFileName%", sendSettings{})
	for given, want := range map[string]string{
		"../../etc/passwd": "_._.._etc_passwd", "..": "_.", ".": "_", ".hidden": "_hidden", `a\b`: "a_b", "a\nb\x00": "a_b_", "bad\xff": "bad_",
		"Größe 1.xml": "Größe 1.xml",
	} {
		m := message(1, "x")
		m.Promoted["SourceFileName"] = given
		if got, err := target.Name(m); got != want || err != nil {
			t.Errorf("%q is %q and not %q, %v", given, got, want, err)
		}
	}
	m := message(1, "x")
	m.Promoted["SourceFileName"] = strings.Repeat("ä", 500)
	first, err := target.Name(m)
	m.Promoted["SourceFileName"] += "b"
	second, _ := target.Name(m)
	if err != nil || len(first) > 120 || first == second {
		t.Errorf("long names are %q and %q, %v", first, second, err)
	}
	dotted, _ := targetOf("/out/.%SourceFileName%", sendSettings{})
	for _, given := range []string{".", "parley-appended-all.txt", "parley-out-1"} { // with the dot the folder above, and files of the adapter
		m.Promoted["SourceFileName"] = given
		if got, err := dotted.Name(m); code(err) != "send.refused, permanent" {
			t.Errorf("%q is %q, %v", given, got, err)
		}
	}
	m.Promoted["SourceFileName"] = ""
	if _, err := target.Name(m); code(err) != "send.refused, permanent" {
		t.Errorf("a message without a name: %v", err)
	}
}

func TestAFileIsCreatedAndNoneIsOverwritten(t *testing.T) {
	t.Parallel()
	p := newPort(t, "%SourceFileName%", `{}`)
	if err := os.WriteFile(filepath.Join(p.folder, "in.xml"), []byte("of somebody"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := message(2, "2")
	other.Promoted["SourceFileName"] = "other.xml"
	if errs := p.send(t, message(1, "1"), other); code(errs[0]) != "send.refused" || errs[1] != nil {
		t.Errorf("the deliveries are %v", errs)
	}
	p.want(t, map[string]string{"in.xml": "of somebody", "other.xml": "2"})
	if errs := p.send(t, message(3, "of someBODY")); code(errs[0]) != "send.refused" {
		t.Errorf("a file of as many bytes counts as sent: %v", errs)
	}
}

// The process ends between the file and the record that it was sent.
func TestARepeatAfterACrashWritesTheSameFile(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{`{}`, `{"mode": "overwrite"}`, `{"fsync": false}`} {
		for _, name := range []string{"%MessageID%.xml", "%SourceFileName%", "%datetime%.xml"} {
			p := newPort(t, name, settings)
			p.sent(t, message(17, "body"))
			p.restart(t, name, settings)
			p.sent(t, message(17, "body"))
			if entries, err := os.ReadDir(p.folder); err != nil || len(entries) != 1 {
				t.Errorf("%s %s: %v, %v", settings, name, entries, err)
			}
		}
	}
}

func TestAFileOfTheSameBytesThatWasThereBeforeTheMessageCameIsNotOurs(t *testing.T) {
	t.Parallel()
	p := newPort(t, "%SourceFileName%", `{}`)
	file := filepath.Join(p.folder, "in.xml")
	before := came.Add(-time.Minute)
	if err := errors.Join(os.WriteFile(file, []byte("1"), 0o600), os.Chtimes(file, before, before)); err != nil {
		t.Fatal(err)
	}
	if errs := p.send(t, message(1, "1")); code(errs[0]) != "send.refused" {
		t.Errorf("the delivery is %v", errs[0])
	}
}

func TestAFileIsOverwrittenAsAWhole(t *testing.T) {
	t.Parallel()
	p := newPort(t, "current.xml", `{"mode": "overwrite", "permissions": "0604"}`)
	p.sent(t, message(1, "first"))
	held, err := os.Open(filepath.Join(p.folder, "current.xml"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	p.sent(t, message(2, "2"))
	if text, err := io.ReadAll(held); string(text) != "first" || err != nil {
		t.Errorf("a reader of the old file sees %q, %v", text, err)
	}
	p.want(t, map[string]string{"current.xml": "2"})
	if info, err := os.Stat(filepath.Join(p.folder, "current.xml")); err != nil || info.Mode().Perm() != 0o604 {
		t.Errorf("the permissions are %v, %v", info.Mode(), err)
	}
}

func TestABodyThatCannotBeReadLeavesNoFile(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{create, overwrite, appendMode} {
		p := newPort(t, "%MessageID%", fmt.Sprintf(`{"mode": %q}`, mode))
		broken := message(1, "x")
		broken.Size = -1
		refusal := &adapter.Failure{Code: "send.pipeline", Permanent: true, Err: errors.New("the field is missing")}
		broken.Open = func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("half"), failing{refusal})), nil
		}
		if errs := p.send(t, broken, message(2, "2")); code(errs[0]) != "send.pipeline, permanent" || errs[1] != nil {
			t.Errorf("%s: the deliveries are %v", mode, errs)
		}
		p.want(t, map[string]string{"2": "2"})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestAFolderThatIsAwayLetsThePortWait(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{create, appendMode} {
		p := newPort(t, "all", fmt.Sprintf(`{"mode": %q}`, mode))
		if err := os.Remove(p.folder); err != nil {
			t.Fatal(err)
		}
		if errs := p.send(t, message(1, "1"), message(2, "2")); code(errs[0]) != "send.unreachable, unreachable" || code(errs[1]) != code(errs[0]) {
			t.Errorf("%s: the deliveries are %v", mode, errs)
		}
	}
}

func TestFilesOfProcessesThatHaveEndedAreRemovedAfterADay(t *testing.T) {
	t.Parallel()
	p := newPort(t, "%MessageID%", `{}`)
	temporary := p.Sender.(*sender).temporary
	old := time.Now().Add(-leftAfter - time.Hour)
	for _, name := range []string{temporary + "OLD", temporary + "NEW", ".parley-out-other-OLD"} {
		file := filepath.Join(p.folder, name)
		if err := os.WriteFile(file, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "NEW") {
			if err := os.Chtimes(file, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.sent(t, message(1, "1"))
	p.want(t, map[string]string{"1": "1", temporary + "NEW": "half", ".parley-out-other-OLD": "half"})
}
