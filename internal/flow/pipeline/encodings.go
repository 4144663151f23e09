package pipeline

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/text"
)

// encodings are the components of the first and the last stage.
func encodings() []Component {
	return []Component{
		{
			Name: "gzip-decoder", Direction: directionReceive, Stages: []string{stageDecode}, make: makeGzipDecoder,
			Meaning: "Unpacks a body that was packed by gzip.",
			Settings: []Setting{
				setting("max_bytes", Integer, "1073741824", "Most bytes of what is unpacked."),
				setting("max_ratio", Integer, "1000", "How many times its packed size the body may have."),
			},
		},
		{
			Name: "charset-encoder", Direction: directionSend, Stages: []string{stageEncode}, make: makeCharsetEncoder,
			Meaning: "Writes text in another charset. A declaration of XML in it stays as it is: xml-assembler writes another.",
			Settings: []Setting{
				setting("charset", CharsetName, "null", "Charset of what is written. It has to be given."),
				setting("mark", Boolean, "false", "Whether a byte-order mark stands first."),
				setting("from", CharsetName, "null", "Charset of the message, where nothing else says it; without it UTF-8."),
			},
		},
		{
			Name: "gzip-encoder", Direction: directionSend, Stages: []string{stageEncode}, make: makeGzipEncoder,
			Meaning: "Packs the body by gzip.",
		},
	}
}

type gzipDecoder struct{ most, ratio int64 }

func makeGzipDecoder(c *compiling, settings json.RawMessage) any {
	s := decode[struct {
		MaxBytes int64 `json:"max_bytes"`
		MaxRatio int64 `json:"max_ratio"`
	}](c, settings)
	return &gzipDecoder{s.MaxBytes, s.MaxRatio}
}

// decode implements [decoder].
func (d *gzipDecoder) decode(body io.Reader, _ *Source) (io.Reader, error) {
	packed := &packedCounter{r: body}
	r, err := gzip.NewReader(packed)
	if err != nil {
		return nil, notGzip(err)
	}
	return &unpacked{r: r, packed: packed, most: d.most, ratio: d.ratio}, nil
}

// notGzip leaves errors of the source as they are.
func notGzip(err error) error {
	_, isCorrupt := errors.AsType[flate.CorruptInputError](err)
	for _, wrong := range []error{gzip.ErrHeader, gzip.ErrChecksum, io.EOF, io.ErrUnexpectedEOF} {
		isCorrupt = isCorrupt || errors.Is(err, wrong)
	}
	if !isCorrupt {
		return err
	}
	return &fault.Fault{
		Message: "the body was not packed by gzip, or is cut off: " + err.Error(), Err: err, Remedy: "send it packed by gzip, whole",
	}
}

// unpacked bounds what comes out of a small body.
type unpacked struct {
	r           io.Reader
	packed      *packedCounter
	made        int64
	most, ratio int64
}

// Read implements [io.Reader].
func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	switch u.made += int64(n); {
	case u.made > u.most:
		return 0, tooLong("max_bytes", "the body has more than %d bytes when it is unpacked", u.most)
	case u.made > ratioFloor && u.made/u.ratio > u.packed.n:
		return 0, tooLong("max_ratio", "the body has more than %d times its packed size when it is unpacked", u.ratio)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = notGzip(err)
	}
	return n, err
}

type charsetEncoder struct {
	from   string
	output text.Output
}

func makeCharsetEncoder(c *compiling, settings json.RawMessage) any {
	s := decode[struct {
		Charset string `json:"charset"`
		Mark    bool   `json:"mark"`
		From    string `json:"from"`
	}](c, settings)
	if s.Charset == "" {
		c.fail("charset", &fault.Fault{Message: "component charset-encoder needs charset", Remedy: "give the charset of what is written"})
		return nil
	}
	e := &charsetEncoder{s.From, text.Output{Charset: s.Charset, Mark: s.Mark}}
	c.checkOutput(e.output)
	return e
}

// result implements [transformer].
func (e *charsetEncoder) result(in Result, _ Source) Result { return written(in.ContentType, e.output) }

// transform implements [transformer].
func (e *charsetEncoder) transform(_ context.Context, body io.Reader, w io.Writer, m outgoing) error {
	from := m.Charset
	if from == "" {
		from = e.from
	}
	source, err := text.Open(body, from, false)
	if err != nil {
		return err
	}
	out, err := e.output.NewWriter(w)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, source); err != nil {
		return err
	}
	return out.Close()
}

type gzipEncoder struct{}

func makeGzipEncoder(*compiling, json.RawMessage) any { return gzipEncoder{} }

// result implements [transformer].
func (gzipEncoder) result(Result, Source) Result {
	return Result{ContentType: "application/gzip", Size: -1}
}

// transform implements [transformer].
func (gzipEncoder) transform(_ context.Context, body io.Reader, w io.Writer, _ outgoing) error {
	packed := gzip.NewWriter(w)
	if _, err := io.Copy(packed, body); err != nil {
		return err
	}
	return packed.Close()
}
