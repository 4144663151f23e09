package verbs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

const (
	spoolMemory = 1 << 20
	bodyMost    = 64 << 20
)

// A spool holds a message until it is known to be good: a large one in a file without a name.
type spool struct {
	memory bytes.Buffer
	file   *os.File
}

func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil && s.memory.Len()+len(p) <= spoolMemory {
		return s.memory.Write(p)
	}
	if s.file == nil {
		file, err := os.CreateTemp("", "parley-flow-")
		if err != nil {
			return 0, err
		}
		s.file = file
		if err := os.Remove(file.Name()); err != nil {
			return 0, err
		}
		if _, err := s.memory.WriteTo(file); err != nil {
			return 0, err
		}
	}
	return s.file.Write(p)
}

func (s *spool) reader() (io.Reader, error) {
	if s.file == nil {
		return bytes.NewReader(s.memory.Bytes()), nil
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return s.file, err
}

// text gives the message for a line of JSON.
func (s *spool) text() (string, error) {
	r, err := s.reader()
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(io.LimitReader(r, bodyMost+1))
	if len(body) > bodyMost {
		return "", &fault.Fault{
			Message: fmt.Sprintf("a message has more than %d bytes", bodyMost),
			Remedy:  "give --out, so that messages go into files",
		}
	}
	return string(body), err
}

// copyTo writes the message on one line.
func (s *spool) copyTo(w io.Writer, isForeign bool) error {
	r, err := s.reader()
	if err != nil {
		return err
	}
	if isForeign {
		return oneLine(w, r)
	}
	_, err = io.Copy(w, r)
	return err
}

func (s *spool) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// oneLine writes a document of XML without line ends: in texts they are references, between attributes blanks.
func oneLine(w io.Writer, document io.Reader) error {
	s := xmlscan.New(document, xmlscan.Limits{})
	for {
		kind, err := s.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		raw := s.Raw()
		if bytes.ContainsAny(raw, "\r\n") {
			end := " "
			switch {
			case kind == xmlscan.Text && s.Depth() > 0:
				end = "&#xA;"
			case kind == xmlscan.CDATA:
				end = "]]>&#xA;<![CDATA["
			}
			raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
			raw = bytes.ReplaceAll(raw, []byte("\r"), []byte("\n"))
			raw = bytes.ReplaceAll(raw, []byte("\n"), []byte(end))
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
	}
}
