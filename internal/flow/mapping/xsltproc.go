package mapping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

// xsltprocStatus are the exit codes of xsltproc that say that the map has stopped by xsl:message.
const xsltprocStopped = 10

// placeOfXsltproc finds the place in a message of xsltproc.
var placeOfXsltproc = regexp.MustCompile(`(?:file (\S+) line (\d+) element (\S+))|(?:(\S+):(\d+): )`)

// xsltproc runs a stylesheet by xsltproc, a process for each message. It refuses maps that only parley-xslt can run.
func (c *crew) xsltproc(ctx context.Context, p *program, l limits, inputs []*Body, output io.Writer) (answer, error) {
	if err := forXsltproc(p, inputs); err != nil {
		return answer{}, err
	}
	select {
	case c.small.places <- struct{}{}:
		defer func() { <-c.small.places }()
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	folder, err := os.MkdirTemp("", "parley-map-")
	if err != nil {
		return answer{}, fmt.Errorf("make a folder for xsltproc: %w", err)
	}
	defer os.RemoveAll(folder)
	for _, f := range p.files {
		name := filepath.Join(folder, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return answer{}, fmt.Errorf("write the stylesheet for xsltproc: %w", err)
		}
		if err := os.WriteFile(name, []byte(f.text), 0o600); err != nil {
			return answer{}, fmt.Errorf("write the stylesheet for xsltproc: %w", err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	bounded := fmt.Sprintf(`ulimit -v %d; ulimit -t %d; ulimit -f 0; exec "$@"`, l.memory>>10, l.seconds)
	command := exec.CommandContext(ctx, "/bin/sh", "-c", bounded, "sh", c.command[0], "--nonet", "--nowrite", "--nomkdir", "--encoding",
		"UTF-8", filepath.Join(folder, filepath.FromSlash(p.files[0].name)), "-")
	command.Env = []string{"LC_ALL=C.UTF-8"}
	var said bytes.Buffer
	out := &boundedWriter{w: output, left: l.output, stop: cancel}
	command.Stdin, command.Stdout, command.Stderr = inputs[0].Reader(), out, &boundedWriter{w: &said, left: endMost, stop: func() {}}
	err = command.Run()
	exit, hasExited := errors.AsType[*exec.ExitError](err)
	switch {
	case out.isOver:
		return answer{status: statusOutput, fields: strings.Repeat("\x00", 5)}, nil
	case err == nil:
		return answer{status: statusDone, fields: "xml"}, nil
	case ctx.Err() != nil:
		return answer{}, context.Cause(ctx)
	case !hasExited:
		return answer{}, fmt.Errorf("run xsltproc: %w", err)
	case exit.ExitCode() < 0:
		return answer{}, &died{exit.ProcessState, err}
	}
	status := byte(statusMap)
	if exit.ExitCode() == xsltprocStopped {
		status = statusStopped
	}
	return answer{status, fieldsOfXsltproc(said.String(), folder)}, nil
}

// fieldsOfXsltproc reads the place out of what xsltproc has said.
func fieldsOfXsltproc(said, folder string) string {
	said = strings.ReplaceAll(said, folder+string(filepath.Separator), "")
	file, line, element := "", "0", ""
	if found := placeOfXsltproc.FindStringSubmatch(said); found != nil {
		file, line, element = found[1]+found[4], found[2]+found[5], found[3]
		said = strings.Replace(said, found[0], "", 1)
	}
	if file == "-" {
		file = ""
	}
	return strings.Join([]string{file, line, element, "", "0", said}, "\x00")
}

// forXsltproc refuses what xsltproc cannot do, or could do harm with.
func forXsltproc(p *program, inputs []*Body) error {
	remedy := "install parley-xslt, which can"
	if len(inputs) > 1 {
		return &fault.Fault{Message: "xsltproc takes one input", Remedy: remedy}
	}
	for _, f := range p.files {
		for _, c := range f.scan().calls {
			if c.space == spaceUserCSharp || c.space == spaceMSXSL {
				return &fault.Fault{
					Message: fmt.Sprintf("xsltproc has no function %s:%s", c.prefix, c.name), Remedy: remedy, File: f.name,
					Place: fault.Place{Line: int64(c.line)},
				}
			}
		}
		if reads := checkForXsltproc(f, p.files); reads != nil {
			return reads
		}
	}
	return withoutType(inputs[0])
}

// withoutType refuses a document that has a document type definition.
func withoutType(b *Body) error {
	s := xmlscan.New(b.Reader(), xmlscan.Limits{})
	for {
		kind, err := s.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if kind == xmlscan.StartElement {
			return nil
		}
	}
}

// boundedWriter takes so many bytes, and stops who writes when there are more.
type boundedWriter struct {
	w      io.Writer
	left   uint64
	stop   func()
	isOver bool
}

func (b *boundedWriter) Write(p []byte) (int, error) {
	if uint64(len(p)) > b.left {
		b.isOver = true
		b.stop()
		return len(p), nil
	}
	b.left -= uint64(len(p))
	return b.w.Write(p)
}
