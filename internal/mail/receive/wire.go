package receive

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// mode is the meaning of the peer's next bytes.
type mode int

const (
	readingCommands mode = iota
	readingAuth          // a line of an authentication
	readingData          // message data up to the final dot
)

// States of a wire.
const (
	stateOpen   int32 = iota
	stateOver         // nothing is read or sent any more
	stateHanded       // the socket goes on under another wire
)

// wire is the connection that the library reads from and writes to. Its goroutine is the only one that uses it, but for state.
type wire struct {
	connection *connection
	session    *session
	in         *bufio.Reader
	out        []byte // replies that are not sent yet
	partial    []byte // a reply of the library that is not complete
	fed        []byte // what the library gets next
	verb       string // of the last command
	mode       mode
	commands   int // since the last read from the network
	lineEnds   time.Time
	isSilent   bool // no banner
	isExtended bool // EHLO
	isLast     bool // the next reply ends the connection
	isMuted    bool // the next reply of the library is not sent: it answers what the wire has said to it
	state      atomic.Int32
	done       chan struct{}
}

// networkBuffer holds the bytes that a peer has sent ahead.
const networkBuffer = 16 << 10

func newWire(c *connection, isSilent bool) *wire {
	w := &wire{connection: c, isSilent: isSilent, done: make(chan struct{})}
	w.in = bufio.NewReaderSize(source{w}, networkBuffer)
	w.session = newSession(w)
	return w
}

func (w *wire) isOver() bool { return w.state.Load() != stateOpen }

// source reads from the network for the buffer of a wire. Before it waits, what was replied goes out.
type source struct{ w *wire }

func (s source) Read(p []byte) (int, error) {
	w := s.w
	w.flush()
	if w.isOver() {
		return 0, io.EOF
	}
	w.commands = 0
	return w.connection.read(p, w.lineEnds)
}

// errors of reading a line.
var (
	errLineTooLong = errors.New("the line is too long")
	errLineEnd     = errors.New("the line does not end with CRLF alone")
)

// readLine reads a line and takes its CRLF off.
func (w *wire) readLine(most int) ([]byte, error) {
	w.lineEnds = time.Now().Add(orForever(w.connection.connector.Limits.InactivityTimeout))
	defer func() { w.lineEnds = time.Time{} }()
	line, err := w.in.ReadSlice('\n')
	for errors.Is(err, bufio.ErrBufferFull) { // longer than any limit
		_, err = w.in.ReadSlice('\n')
		if err == nil {
			return nil, errLineTooLong
		}
	}
	switch {
	case err != nil:
		return nil, err
	case most > 0 && len(line) > most:
		return nil, errLineTooLong
	case len(line) < 2 || line[len(line)-2] != '\r' || bytes.IndexByte(line[:len(line)-2], '\r') >= 0 || bytes.IndexByte(line, 0) >= 0:
		return nil, errLineEnd
	}
	return line[:len(line)-2], nil
}

// Read gives the library its next line, or the bytes of a chunk.
func (w *wire) Read(p []byte) (int, error) {
	for {
		if len(w.fed) > 0 {
			n := copy(p, w.fed)
			w.fed = w.fed[n:]
			return n, nil
		}
		if w.isOver() {
			return 0, io.EOF
		}
		switch w.mode {
		case readingData: // the session has read the data: the library gets none
			w.mode = readingCommands
			w.fed = []byte(".\r\n")
		case readingCommands, readingAuth:
			if err := w.nextLine(); err != nil {
				return 0, w.failed(err)
			}
		}
	}
}

// nextLine reads a line, and answers it or leaves it to the library.
func (w *wire) nextLine() error {
	l := w.connection.connector.Limits
	most := l.CommandLine
	if w.mode == readingAuth {
		most = max(most, 12288) // RFC 4954, section 4
	}
	line, err := w.readLine(most)
	w.commands++
	switch {
	case errors.Is(err, errLineTooLong):
		w.reply(NewReply(500, 5, 6, "The line is too long"))
		return nil
	case errors.Is(err, errLineEnd):
		w.reply(NewReply(500, 5, 2, "A line ends with CRLF, and has no other CR, LF or NUL"))
		return nil
	case err != nil:
		return err
	case l.PipelinedCommands > 0 && w.commands > l.PipelinedCommands:
		w.drop("421 4.7.0 Too many commands at once, closing\r\n")
		return nil
	case w.connection.isClosing():
		w.drop("421 4.3.2 The server is stopping\r\n")
		return nil
	}
	if w.mode == readingAuth {
		w.fed = append(bytes.Clone(line), '\r', '\n')
		return nil
	}
	w.connection.trace("command", line)
	if w.handle(string(line)) {
		w.fed = append(bytes.Clone(line), '\r', '\n')
	}
	return nil
}

// failed ends a wire whose network failed, with a reply where the peer can still read one.
func (w *wire) failed(err error) error {
	var timeout net.Error
	switch {
	case w.connection.isClosing():
		w.drop("421 4.3.2 The server is stopping\r\n")
	case errors.As(err, &timeout) && timeout.Timeout():
		w.drop("421 4.4.2 Timeout, closing\r\n")
	}
	w.state.CompareAndSwap(stateOpen, stateOver)
	return io.EOF
}

// Close is called by the library when it is done with the wire.
func (w *wire) Close() error {
	w.flush()
	w.state.CompareAndSwap(stateOpen, stateOver)
	select {
	case <-w.done:
	default:
		close(w.done)
	}
	return nil
}

// The rest of a net.Conn. Deadlines are ours alone.

func (w *wire) LocalAddr() net.Addr              { return w.connection.socket.LocalAddr() }
func (w *wire) RemoteAddr() net.Addr             { return w.connection.socket.RemoteAddr() }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }
