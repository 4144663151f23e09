package pipeline

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/jsonbody"
)

// archives are the components for files of zip.
func archives() []Component {
	return []Component{
		{
			Name: "zip-decoder", Direction: directionReceive, Stages: []string{stageDecode}, make: makeZipDecoder,
			Meaning: "Unpacks the file of an archive of zip. The archive is kept in memory while it is read.",
			Settings: []Setting{
				setting("entry", Text, `"*"`, "Mask for the name of the file, without folders; the archive has one such file."),
				setting("max_packed_bytes", Integer, "67108864", "Most bytes of the archive."),
				setting("max_bytes", Integer, "1073741824", "Most bytes of what is unpacked."),
				setting("max_ratio", Integer, "1000", "How many times its packed size the file may have."),
				setting("max_entries", Integer, "1000", "Most files and folders of the archive."),
			},
		},
		{
			Name: "zip-encoder", Direction: directionSend, Stages: []string{stageEncode}, make: makeZipEncoder,
			Meaning: "Packs the body into an archive of zip with one file.",
			Settings: []Setting{
				setting("entry", Text, `"message"`, "Name of the file in the archive."),
			},
		},
	}
}

type zipDecoder struct {
	Entry          string `json:"entry"`
	MaxPackedBytes int64  `json:"max_packed_bytes"`
	MaxBytes       int64  `json:"max_bytes"`
	MaxRatio       int64  `json:"max_ratio"`
	MaxEntries     int64  `json:"max_entries"`
}

func makeZipDecoder(c *compiling, settings json.RawMessage) any {
	d := decode[zipDecoder](c, settings)
	if _, err := path.Match(d.Entry, ""); err != nil {
		c.fail("entry", &fault.Fault{Message: "the mask cannot be read", Err: err, Remedy: "write * for any characters, ? for one"})
		return nil
	}
	return &d
}

// tooLong is the fault of a body that has more than a setting says.
func tooLong(setting, message string, arguments ...any) *fault.Fault {
	return &fault.Fault{Message: fmt.Sprintf(message, arguments...), Err: jsonbody.ErrTooLong, Remedy: "raise " + setting}
}

// decode implements [decoder]. The directory of an archive stands at its end.
func (d *zipDecoder) decode(body io.Reader, source *Source) (io.Reader, error) {
	packed, err := io.ReadAll(io.LimitReader(body, d.MaxPackedBytes+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(packed)) > d.MaxPackedBytes:
		return nil, tooLong("max_packed_bytes", "the archive has more than %d bytes", d.MaxPackedBytes)
	case int64(bytes.Count(packed, []byte(directoryEntry))) > d.MaxEntries:
		// Counted before they are read, whatever the directory says of their number.
		return nil, tooLong("max_entries", "the archive has more than %d entries", d.MaxEntries)
	}
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return nil, notZip(err)
	}
	found, err := d.find(archive)
	if err != nil {
		return nil, err
	}
	opened, err := found.Open()
	if err != nil {
		return nil, notZip(err)
	}
	most := d.MaxBytes
	// The directory is not believed: a file is packed in no more bytes than the archive has, and what comes out is counted.
	if byRatio := max(int64(min(found.CompressedSize64, uint64(len(packed))))*d.MaxRatio, ratioFloor); byRatio < most {
		most = byRatio
	}
	source.Size, source.ContentType = -1, ""
	if _, isNamed := source.Promoted[fileNameProperty]; !isNamed {
		source.Promoted = with(maps.Clone(source.Promoted), fileNameProperty, path.Base(found.Name))
	}
	return &unzipped{r: opened, left: most, most: most, decoder: d}, nil
}

// directoryEntry is how each entry of the directory begins.
const directoryEntry = "PK\x01\x02"

// find finds the file.
func (d *zipDecoder) find(archive *zip.Reader) (found *zip.File, err error) {
	var names []string
	for _, f := range archive.File {
		if strings.HasSuffix(f.Name, "/") || f.FileInfo().IsDir() {
			continue
		}
		if isMatch, _ := path.Match(d.Entry, path.Base(f.Name)); isMatch {
			found, names = f, append(names, f.Name)
		}
	}
	switch {
	case len(names) == 1 && found.Flags&1 != 0:
		return nil, &fault.Fault{Message: "the file of the archive is encrypted", Remedy: "send an archive without a password"}
	case len(names) == 1:
		return found, nil
	case len(names) == 0:
		return nil, &fault.Fault{
			Message: fmt.Sprintf("the archive has no file %s", d.Entry), Remedy: "send one with such a file, or have entry name what it has",
		}
	}
	return nil, &fault.Fault{
		Message: fmt.Sprintf("the archive has %d files %s, such as %q and %q", len(names), d.Entry, names[0], names[1]),
		Remedy:  "send one file in an archive, or have entry name one of them",
	}
}

// notZip is the fault of a body that cannot be unpacked.
func notZip(err error) error {
	return &fault.Fault{
		Message: "the body is no archive of zip, or is cut off: " + err.Error(), Err: err, Remedy: "send an archive of zip, whole",
	}
}

// unzipped bounds what comes out of an archive.
type unzipped struct {
	r          io.Reader
	left, most int64
	decoder    *zipDecoder
}

// Read implements [io.Reader].
func (u *unzipped) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if u.left -= int64(n); u.left < 0 {
		if u.most < u.decoder.MaxBytes {
			return 0, tooLong("max_ratio", "the file has more than %d times its packed size when it is unpacked", u.decoder.MaxRatio)
		}
		return 0, tooLong("max_bytes", "the file has more than %d bytes when it is unpacked", u.most)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = notZip(err)
	}
	return n, err
}

type zipEncoder struct {
	Entry string `json:"entry"`
}

func makeZipEncoder(c *compiling, settings json.RawMessage) any {
	e := decode[zipEncoder](c, settings)
	if strings.ContainsAny(e.Entry, "/\\\x00") || e.Entry == "." || e.Entry == ".." {
		c.fail("entry", &fault.Fault{Message: "the name of the file leads to a folder", Remedy: "give a name without folders"})
		return nil
	}
	return &e
}

// result implements [transformer].
func (*zipEncoder) result(Result, Source) Result {
	return Result{ContentType: "application/zip", Size: -1}
}

// transform implements [transformer]. The archive of a message is always the same: it has no time.
func (e *zipEncoder) transform(_ context.Context, body io.Reader, w io.Writer, _ outgoing) error {
	archive := zip.NewWriter(w)
	file, err := archive.CreateHeader(&zip.FileHeader{Name: e.Entry, Method: zip.Deflate})
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, body); err != nil {
		return err
	}
	return archive.Close()
}

// ratioFloor is how many bytes are always given before the ratio counts: what is small does no harm.
const ratioFloor = 64 << 10

// packedCounter counts what a decoder has read.
type packedCounter struct {
	r io.Reader
	n int64
}

// Read implements [io.Reader].
func (c *packedCounter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
