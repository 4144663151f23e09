package wire

import (
	"bytes"
	"compress/flate"
	"io"
	"sync"

	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
)

// CompressAbove is the length from which a payload is worth compressing.
const CompressAbove = 1024

var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(io.Discard, flate.BestSpeed)
	if err != nil {
		panic(err) // only for a level that does not exist
	}
	return w
}}

// Pack makes a frame, compressed if the peer takes that and it helps.
func Pack(kind pb.Kind, id uint64, payload []byte, compress bool) *pb.Frame {
	frame := &pb.Frame{Kind: kind, Id: id, Payload: payload}
	if !compress || len(payload) < CompressAbove {
		return frame
	}
	packed := bytes.NewBuffer(make([]byte, 0, len(payload)/2))
	w, _ := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(packed)
	if _, err := w.Write(payload); err != nil {
		return frame
	}
	if err := w.Close(); err != nil || packed.Len() > len(payload)*7/8 {
		return frame
	}
	frame.Compression = pb.Compression_COMPRESSION_DEFLATE
	frame.Size = uint64(len(payload))
	frame.Payload = packed.Bytes()
	return frame
}

// Length is that of the payload before it was compressed, as far as the frame may be believed. It is what counts in the window.
func Length(frame *pb.Frame) int64 {
	if frame.GetCompression() == pb.Compression_COMPRESSION_NONE {
		return int64(len(frame.GetPayload()))
	}
	if frame.GetSize() > 1<<40 {
		return 1 << 40
	}
	return int64(frame.GetSize())
}

// Unpack returns the payload of a frame, of at most largest bytes.
func Unpack(frame *pb.Frame, largest int64) ([]byte, error) {
	if n := Length(frame); n > largest {
		return nil, malformed("a payload of %d bytes, at most %d are taken", n, largest)
	}
	switch frame.GetCompression() {
	case pb.Compression_COMPRESSION_NONE:
		return frame.GetPayload(), nil
	case pb.Compression_COMPRESSION_DEFLATE:
		return inflate(frame.GetPayload(), Length(frame))
	default:
		return nil, malformed("compression %d is not known", frame.GetCompression())
	}
}

// deflateMost is how much longer a payload can be than what deflate makes of it.
const deflateMost = 1032

// inflate makes room for what the compressed bytes can hold, whatever size they claim.
func inflate(packed []byte, size int64) ([]byte, error) {
	if size > int64(len(packed))*deflateMost {
		return nil, malformed("%d bytes cannot hold the %d they claim", len(packed), size)
	}
	r := flate.NewReader(bytes.NewReader(packed))
	defer r.Close()
	payload := make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, malformed("inflate: %s", err)
	}
	var more [1]byte
	if n, err := r.Read(more[:]); n != 0 || err != io.EOF {
		return nil, malformed("more than the %d bytes it claims", size)
	}
	return payload, nil
}
