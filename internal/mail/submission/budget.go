package submission

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// Budget bounds what requests that are read at the same time have in memory: how many there are, of a user and of all, and the bytes of
// their bodies, each of which is in memory up to three times. Its fields are set before it is used; several handlers may share one.
type Budget struct {
	Requests int   // 64
	OfUser   int   // 16: one user does not take the room of all
	Bytes    int64 // 128 MB

	mu       sync.Mutex
	requests int
	bytes    int64
	ofUser   map[string]int
}

// take makes room for a request, or reports that there is none now. The body of a single one always has room.
func (b *Budget) take(user string, size int64) (free func(), isTaken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	most, mostOfUser, bytes := b.Requests, b.OfUser, b.Bytes
	if most == 0 {
		most = 64
	}
	if mostOfUser == 0 {
		mostOfUser = 16
	}
	if bytes == 0 {
		bytes = 128 << 20
	}
	if b.requests >= most || b.ofUser[user] >= mostOfUser || b.requests > 0 && b.bytes+size > bytes {
		return nil, false
	}
	if b.ofUser == nil {
		b.ofUser = make(map[string]int)
	}
	b.requests, b.bytes = b.requests+1, b.bytes+size
	b.ofUser[user]++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.requests, b.bytes = b.requests-1, b.bytes-size
		b.ofUser[user]--
		if b.ofUser[user] == 0 {
			delete(b.ofUser, user)
		}
	}, true
}

// How long a body may take: this, and the time that it needs at this pace.
const (
	bodyGrace = 30 * time.Second
	bodyPace  = 16 << 10 // bytes a second
)

// pacedBody reads a body that has to come at a pace.
type pacedBody struct {
	io.Reader
	response *http.ResponseController
	begun    time.Time
	grace    time.Duration
	read     int64
}

func (p *pacedBody) Read(into []byte) (int, error) {
	// Where a connection knows no deadlines, such as one of a test, there are none.
	_ = p.response.SetReadDeadline(p.begun.Add(p.grace + time.Duration(p.read)*time.Second/bodyPace))
	n, err := p.Reader.Read(into)
	p.read += int64(n)
	return n, err
}
