package pipeline

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"path"
	"regexp"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/mail/parts"
)

// entities are the components for bodies of MIME.
func entities() []Component {
	return []Component{
		{
			Name: "mime-decoder", Direction: directionReceive, Stages: []string{stageDecode}, make: makeMIMEDecoder,
			Meaning: "Takes a part out of a body of MIME, and its transfer encoding off it. The body is kept in memory while it is read.",
			Settings: []Setting{
				setting("part", Text, `"*/*"`, "Mask for the media type of the part; the first one that fits is taken."),
				setting("name", Text, "null", "Mask for the file name of the part; without it parts without a name fit too."),
				setting("max_packed_bytes", Integer, "67108864", "Most bytes of the body of MIME."),
			},
		},
		{
			Name: "mime-encoder", Direction: directionSend, Stages: []string{stageEncode}, make: makeMIMEEncoder,
			Meaning: "Makes the body the only part of a body of MIME, multipart/mixed, in base64.",
			Settings: []Setting{
				setting("name", Text, "null", "File name of the part; without it the part has none."),
				setting("header", Boolean, "false", "Whether the header of the body stands in front of it, as in a file."),
			},
		},
	}
}

type mimeDecoder struct {
	Part           string `json:"part"`
	Name           string `json:"name"`
	MaxPackedBytes int64  `json:"max_packed_bytes"`
}

func makeMIMEDecoder(c *compiling, settings json.RawMessage) any {
	d := decode[mimeDecoder](c, settings)
	for setting, mask := range map[string]string{"part": d.Part, "name": d.Name} {
		if _, err := path.Match(mask, ""); err != nil {
			c.fail(setting, &fault.Fault{Message: "the mask cannot be read", Err: err, Remedy: "write * for any characters, ? for one"})
			return nil
		}
	}
	d.Part = strings.ToLower(d.Part)
	return &d
}

// fieldBegin is how a header begins.
var fieldBegin = regexp.MustCompile(`^[A-Za-z0-9-]+[ \t]*:`)

// decode implements [decoder].
func (d *mimeDecoder) decode(body io.Reader, source *Source) (io.Reader, error) {
	entity, err := io.ReadAll(io.LimitReader(body, d.MaxPackedBytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(entity)) > d.MaxPackedBytes {
		return nil, tooLong("max_packed_bytes", "the body of MIME has more than %d bytes", d.MaxPackedBytes)
	}
	if boundary := boundaryOf(entity, source.ContentType); boundary != "" {
		header := "Content-Type: " + mime.FormatMediaType("multipart/mixed", map[string]string{"boundary": boundary}) + "\r\n\r\n"
		entity = append([]byte(header), entity...)
	} else if !fieldBegin.Match(entity) {
		return nil, &fault.Fault{
			Message: "the body is no MIME: it begins with neither a header nor a boundary", Remedy: "send a body of MIME with its header",
		}
	}
	read, err := parts.Read(bytes.NewReader(entity), parts.Usual)
	if err != nil {
		return nil, err
	}
	if read.Parsed.State == parts.Truncated || read.Parsed.State == parts.Damaged {
		return nil, damaged(read)
	}
	found, err := d.find(read)
	if err != nil {
		return nil, err
	}
	source.Size, source.ContentType, source.Charset = -1, found.Type, found.Charset
	if _, isNamed := source.Promoted[fileNameProperty]; found.Name != "" && !isNamed {
		source.Promoted = with(maps.Clone(source.Promoted), fileNameProperty, path.Base(strings.ReplaceAll(found.Name, `\`, "/")))
	}
	return bytes.NewReader(found.Content(entity)), nil
}

// fileNameProperty is the property with the name of the file that a message was.
const fileNameProperty = "SourceFileName"

// boundaryOf gives the boundary of a body without a header, as HTTP sends it; empty where it begins with a header.
func boundaryOf(body []byte, contentType string) string {
	media, parameters, err := mime.ParseMediaType(contentType)
	if err == nil && strings.HasPrefix(media, "multipart/") && parameters["boundary"] != "" {
		return parameters["boundary"]
	}
	line, _, _ := bytes.Cut(body, []byte("\n"))
	boundary, isBoundary := strings.CutPrefix(strings.TrimRight(string(line), " \t\r"), "--")
	if !isBoundary || boundary == "" || len(boundary) > 70 {
		return ""
	}
	return boundary
}

// damaged is the fault of a body that is not whole, or beyond the limits within which MIME is read.
func damaged(read *parts.Message) error {
	reason := "a limit"
	if len(read.Parsed.Problems) > 0 {
		reason = read.Parsed.Problems[0].Problem
	}
	return &fault.Fault{
		Message: fmt.Sprintf("the body of MIME is %s: %s", strings.ToLower(read.Parsed.State), reason),
		Remedy:  fmt.Sprintf("send it whole, with at most %d parts, %d within one another", parts.Usual.Parts, parts.Usual.Depth),
	}
}

// find finds the part.
func (d *mimeDecoder) find(read *parts.Message) (parts.Part, error) {
	leaves := read.Leaves()
	var kinds []string
	for _, leaf := range leaves {
		isType, _ := path.Match(d.Part, strings.ToLower(leaf.Type))
		isName := d.Name == ""
		if !isName {
			isName, _ = path.Match(d.Name, leaf.Name)
		}
		if isType && isName {
			return leaf, nil
		}
		if len(kinds) < 10 {
			kinds = append(kinds, strings.TrimSpace(leaf.Type+" "+leaf.Name))
		}
	}
	return parts.Part{}, &fault.Fault{
		Message: fmt.Sprintf("of %d parts none is %s: there are %s",
			len(leaves), strings.TrimSpace(d.Part+" "+d.Name), strings.Join(kinds, ", ")),
		Remedy: "send such a part, or have part and name say what there is",
	}
}

type mimeEncoder struct {
	Name   string `json:"name"`
	Header bool   `json:"header"`
}

func makeMIMEEncoder(c *compiling, settings json.RawMessage) any {
	e := decode[mimeEncoder](c, settings)
	if strings.ContainsFunc(e.Name, func(r rune) bool { return r < ' ' || r == '/' || r == '\\' || r == 0x7f }) {
		c.fail("name", &fault.Fault{Message: "the file name has a control character, or leads to a folder", Remedy: "give a name alone"})
		return nil
	}
	return &e
}

// boundary stands in no text of base64: there no letter follows an equals sign.
const boundary = "=_parley"

// result implements [transformer].
func (*mimeEncoder) result(Result, Source) Result {
	return Result{ContentType: `multipart/mixed; boundary="` + boundary + `"`, Size: -1}
}

// transform implements [transformer].
func (e *mimeEncoder) transform(_ context.Context, body io.Reader, w io.Writer, m outgoing) error {
	var head strings.Builder
	if e.Header {
		head.WriteString("MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"" + boundary + "\"\r\n\r\n")
	}
	kind, parameters, err := mime.ParseMediaType(m.ContentType)
	if err != nil {
		kind, parameters = "application/octet-stream", nil
	}
	if m.Charset != "" && parameters["charset"] == "" {
		parameters = map[string]string{"charset": m.Charset}
	}
	head.WriteString("--" + boundary + "\r\nContent-Type: " + mime.FormatMediaType(kind, parameters) + "\r\n")
	head.WriteString("Content-Transfer-Encoding: base64\r\n")
	if e.Name != "" {
		head.WriteString("Content-Disposition: " + mime.FormatMediaType("attachment", map[string]string{"filename": e.Name}) + "\r\n")
	}
	head.WriteString("\r\n")
	if _, err := io.WriteString(w, head.String()); err != nil {
		return err
	}
	encoded := base64.NewEncoder(base64.StdEncoding, &lines{w: w})
	if _, err := io.Copy(encoded, body); err != nil {
		return err
	}
	if err := encoded.Close(); err != nil {
		return err
	}
	_, err = io.WriteString(w, "\r\n--"+boundary+"--\r\n")
	return err
}

// lineLength is how long the lines of base64 are.
const lineLength = 76

// lines ends a line behind so many bytes.
type lines struct {
	w      io.Writer
	column int
}

// Write implements [io.Writer].
func (l *lines) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		if l.column == lineLength {
			if _, err := io.WriteString(l.w, "\r\n"); err != nil {
				return written, err
			}
			l.column = 0
		}
		n, err := l.w.Write(p[:min(len(p), lineLength-l.column)])
		written, l.column, p = written+n, l.column+n, p[n:]
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
