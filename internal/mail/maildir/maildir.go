// Package maildir delivers messages into Maildirs: a directory a mailbox, a file a message.
//
// A message has the line ends of files, LF. It is written into tmp, synchronised, and moved into new; then new is synchronised. So a
// reader never sees a part of a message, and what was reported as delivered survives a crash of the machine. The name of the file is made
// of the delivery, not of the moment: a delivery that is repeated because its result was lost finds its file, and delivers nothing twice,
// as long as a reader has not moved the file. Each step is made from the folder of the store, or of the mailbox, that was opened: links do
// not lead out of either.
//
// Source: spec/hub-transport.md section 12.1 and 15.3.
package maildir

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Store is a directory with a Maildir for each mailbox.
type Store struct {
	// Open opens the folder that holds the mailboxes.
	Open func() (*os.Root, error)
	// Path is where below that a mailbox stands, with {local} and {domain} for the parts of its address; "" means {domain}/{local}.
	Path string
}

// Delivery is a message for one mailbox.
type Delivery struct {
	// ID names this delivery of this message to this mailbox, for as long as it may be repeated.
	ID string
	// Sender is written as Return-Path, and Recipient as Delivered-To.
	Sender, Recipient string
	// Body is the message; one that has other than Size bytes is no whole one, and is not delivered.
	Body io.Reader
	Size int64
	// Confirm is asked when all is written, before the mailbox has it: an error keeps it out. Nil means that nothing does.
	Confirm func() error
}

// ErrMailbox is a mailbox whose name cannot be a directory; trying again is of no use.
var ErrMailbox = errors.New("the address is no name of a mailbox")

// Deliver writes a message into a mailbox, and makes the mailbox when it is not there. Delivered is false when the message was there.
func (s Store) Deliver(delivery Delivery) (delivered bool, err error) {
	path, err := s.path(delivery.Recipient)
	if err != nil {
		return false, err
	}
	mailbox, err := s.mailbox(path)
	if err != nil {
		return false, fmt.Errorf("open the mailbox: %w", err)
	}
	defer func() { _ = mailbox.Close() }()
	for _, folder := range []string{"tmp", "new", "cur"} {
		if err := mailbox.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return false, fmt.Errorf("make the mailbox: %w", err)
		}
	}
	name := fileName(delivery.ID)
	if there, err := exists(mailbox, name); err != nil || there {
		return false, err
	}
	temporary := fmt.Sprintf("tmp/%s.%d.%d", name, os.Getpid(), time.Now().UnixNano())
	err = write(mailbox, temporary, delivery)
	if err == nil && delivery.Confirm != nil {
		err = delivery.Confirm()
	}
	if err != nil {
		_ = mailbox.Remove(temporary)
		return false, err
	}
	// A link, unlike a rename, fails where another daemon was faster.
	err = mailbox.Link(temporary, "new/"+name)
	_ = mailbox.Remove(temporary)
	if errors.Is(err, fs.ErrExist) {
		return false, synchronise(mailbox, "new")
	}
	if err != nil {
		return false, fmt.Errorf("move the message into the mailbox: %w", err)
	}
	return true, synchronise(mailbox, "new")
}

// mailbox opens a mailbox, and makes it when it is not there.
func (s Store) mailbox(path string) (*os.Root, error) {
	root, err := s.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	mailbox, err := root.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = root.MkdirAll(path, 0o700); err == nil {
			mailbox, err = root.OpenRoot(path)
		}
	}
	return mailbox, err
}

// path is where in the store the mailbox of an address stands. An address that could lead out of the store is refused.
func (s Store) path(address string) (string, error) {
	at := strings.LastIndexByte(address, '@')
	if at <= 0 || at == len(address)-1 {
		return "", fmt.Errorf("%w: %q", ErrMailbox, address)
	}
	local, domain := strings.ToLower(address[:at]), strings.ToLower(address[at+1:])
	for _, part := range []string{local, domain} {
		if part == "." || part == ".." || len(part) > 200 || strings.ContainsAny(part, "/\\\x00") || strings.HasPrefix(part, ".") {
			return "", fmt.Errorf("%w: %q", ErrMailbox, address)
		}
	}
	path := s.Path
	if path == "" {
		path = "{domain}/{local}"
	}
	path = strings.NewReplacer("{local}", local, "{domain}", domain).Replace(path)
	if !filepath.IsLocal(path) {
		return "", fmt.Errorf("%w: %q leads out of the store", ErrMailbox, path)
	}
	return path, nil
}

// fileName is the name of a delivery's file. It has no colon, which begins the flags that readers add.
func fileName(id string) string {
	sum := sha256.Sum256([]byte(id))
	host, _ := os.Hostname()
	host = strings.NewReplacer("/", "_", ":", "_").Replace(host)
	return hex.EncodeToString(sum[:16]) + ".parley." + host
}

// exists is whether a reader or an earlier attempt has the file, with or without flags.
func exists(mailbox *os.Root, name string) (bool, error) {
	stem, _, _ := strings.Cut(name, ".")
	for _, folder := range []string{"new", "cur"} {
		found, err := fs.Glob(mailbox.FS(), folder+"/"+stem+".parley.*")
		if err != nil {
			return false, fmt.Errorf("read the mailbox: %w", err)
		}
		if len(found) > 0 {
			return true, nil
		}
	}
	return false, nil
}

func write(mailbox *os.Root, path string, delivery Delivery) (err error) {
	file, err := mailbox.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the message: %w", err)
	}
	defer func() {
		if closed := file.Close(); err == nil && closed != nil {
			err = fmt.Errorf("write the message: %w", closed)
		}
	}()
	header := fmt.Sprintf("Return-Path: <%s>\r\nDelivered-To: %s\r\n", delivery.Sender, delivery.Recipient)
	lines, body := &lineWriter{file: bufio.NewWriterSize(file, 64<<10)}, &counted{from: delivery.Body}
	if _, err := io.Copy(lines, io.MultiReader(strings.NewReader(header), body)); err != nil {
		return fmt.Errorf("write the message: %w", err)
	}
	if err := lines.end(); err != nil {
		return fmt.Errorf("write the message: %w", err)
	}
	if body.read != delivery.Size {
		return fmt.Errorf("write the message: it ended after %d of %d bytes: %w", body.read, delivery.Size, io.ErrUnexpectedEOF)
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("synchronise the message: %w", err)
	}
	return nil
}

// lineWriter writes lines that end with CRLF as files have them, with LF: readers of Maildirs, and programs that get such a file by a pipe,
// expect that. A CR elsewhere stays.
type lineWriter struct {
	file  *bufio.Writer
	hasCR bool // that is not written yet
}

// Write writes a piece of a message.
func (w *lineWriter) Write(piece []byte) (int, error) {
	for rest := piece; len(rest) > 0; {
		if w.hasCR && rest[0] != '\n' {
			_ = w.file.WriteByte('\r') // It keeps its error.
		}
		w.hasCR = false
		at := bytes.IndexByte(rest, '\r')
		if at < 0 {
			at = len(rest)
		} else {
			w.hasCR = true
		}
		if _, err := w.file.Write(rest[:at]); err != nil {
			return 0, err
		}
		rest = rest[min(at+1, len(rest)):]
	}
	return len(piece), nil
}

// end writes what is left.
func (w *lineWriter) end() error {
	if w.hasCR {
		_ = w.file.WriteByte('\r') // It keeps its error.
	}
	return w.file.Flush()
}

// counted counts what is read.
type counted struct {
	from io.Reader
	read int64
}

// Read reads.
func (c *counted) Read(into []byte) (int, error) {
	n, err := c.from.Read(into)
	c.read += int64(n)
	return n, err
}

// synchronise makes the names in a directory survive a crash.
func synchronise(mailbox *os.Root, path string) error {
	directory, err := mailbox.Open(path)
	if err != nil {
		return fmt.Errorf("synchronise the mailbox: %w", err)
	}
	defer func() { _ = directory.Close() }()
	if err := directory.Sync(); err != nil {
		return fmt.Errorf("synchronise the mailbox: %w", err)
	}
	return nil
}
