package verbs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
)

// written is a message as programs read it; a stable format.
type written struct {
	Number int64  `json:"number"`
	Type   string `json:"type,omitempty"`
	File   string `json:"file,omitempty"`
	Body   string `json:"body,omitempty"`
}

// sink writes messages to standard output or into a folder.
type sink struct {
	env       environment
	folder    string
	source    string // the file that is taken apart
	extension string
	isForeign bool // the XML is not ours and may have several lines
	progress  *progress
	spool     *spool
	file      *os.File
	made      []string
	good, bad int64
}

func newSink(env environment, folder, source string) (*sink, error) {
	if folder != "" {
		if err := os.MkdirAll(folder, 0o777); err != nil { //nolint:gosec // The umask of the user decides, as for the files in it.
			return nil, &fault.Fault{Message: err.Error(), Err: err, Remedy: "name a folder that can be made"}
		}
	}
	return &sink{env: env, folder: folder, source: source, extension: ".xml", progress: newProgress(env.Stderr)}, nil
}

func (s *sink) path(number int64) string {
	return filepath.Join(s.folder, strconv.FormatInt(number, 10)+s.extension)
}

// Begin implements [interchange.Sink].
func (s *sink) Begin(number int64) (io.Writer, error) {
	if s.folder == "" {
		s.spool = &spool{}
		return s.spool, nil
	}
	file, err := os.Create(s.path(number) + ".part")
	if err != nil {
		return nil, err
	}
	s.file = file
	return file, nil
}

// Abort implements [interchange.Sink].
func (s *sink) Abort(int64) error {
	if s.spool != nil {
		err := s.spool.Close()
		s.spool = nil
		return err
	}
	if s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// End implements [interchange.Sink].
func (s *sink) End(m interchange.Message) error {
	s.good++
	s.progress.messages(s.good)
	line := written{Number: m.Number, Type: m.Type}
	if s.folder != "" {
		file := s.file
		s.file = nil
		line.File = s.path(m.Number)
		if err := errors.Join(file.Close(), os.Rename(file.Name(), line.File)); err != nil {
			return err
		}
		s.made = append(s.made, line.File)
		if s.env.JSON {
			return s.print(line)
		}
		return nil
	}
	defer s.spool.Close()
	if s.env.JSON {
		body, err := s.spool.text()
		if err != nil {
			return err
		}
		line.Body = body
		return s.print(line)
	}
	s.progress.clear()
	if err := s.spool.copyTo(s.env.Stdout, s.isForeign); err != nil {
		return err
	}
	_, err := io.WriteString(s.env.Stdout, "\n")
	return err
}

func (s *sink) print(line written) error {
	encoder := json.NewEncoder(s.env.Stdout)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(line)
}

// Bad implements [interchange.Sink]. With a folder the bytes of the bad part are put there.
func (s *sink) Bad(bad interchange.Bad) error {
	s.bad++
	s.progress.clear()
	s.env.report(fault.InFile(bad.Fault, s.source))
	if s.folder == "" {
		return nil
	}
	name := filepath.Join(s.folder, fmt.Sprintf("bad-%d", s.bad))
	s.made = append(s.made, name)
	if s.source != "-" {
		return copyRange(name, s.source, bad.From, bad.To)
	}
	if bad.Raw != nil {
		return os.WriteFile(name, bad.Raw, 0o666)
	}
	return nil
}

func copyRange(to, from string, begin, end int64) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, io.NewSectionReader(source, begin, end-begin))
	return errors.Join(err, target.Close())
}

// aside writes header and trailer beside the messages.
func (s *sink) aside(header, trailer []byte) error {
	if s.folder == "" {
		return nil
	}
	for _, part := range []struct {
		name string
		body []byte
	}{{"header", header}, {"trailer", trailer}} {
		if part.body == nil {
			continue
		}
		name := filepath.Join(s.folder, part.name+".xml")
		if err := os.WriteFile(name, part.body, 0o666); err != nil {
			return err
		}
		s.made = append(s.made, name)
	}
	return nil
}

// finish ends the command: a file that could not be read leaves nothing in the folder.
func (s *sink) finish(err error, disagreement string) (exit int, _ error) {
	s.progress.clear()
	if disagreement != "" {
		fmt.Fprintf(s.env.Stderr, "parley: %s: %s\n", s.source, disagreement)
	}
	if err != nil {
		for _, name := range s.made {
			_ = os.Remove(name) // the error that is returned says why
		}
		return 0, err
	}
	if s.folder != "" && !s.env.JSON {
		fmt.Fprintf(s.env.Stderr, "%d messages, %d bad\n", s.good, s.bad)
	}
	if s.bad > 0 {
		return exitBad, nil
	}
	return 0, nil
}
