package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw sends bytes as they are, and gives the statuses of the answers until the connection ends.
func (d *door) raw(text string) (statuses []int) {
	d.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(d.Context(), "tcp", strings.TrimSuffix(strings.TrimPrefix(d.address, "http://"), "/orders"))
	if err != nil {
		d.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Write([]byte(text)); err != nil {
		d.Fatal(err)
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	in := bufio.NewReader(conn)
	for {
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			return statuses
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		statuses = append(statuses, answer.StatusCode)
	}
}

// Where a request ends is what a proxy in front and the listener must agree about: what says two things is refused, and no part of it is
// taken as another request.
func TestARequestWhoseEndIsInDoubtIsRefused(t *testing.T) {
	t.Parallel()
	d := openDoor(t, open)
	const (
		begin = "POST /orders HTTP/1.1\r\nHost: h\r\n"
		inner = "POST /orders HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nhidden"
	)
	for name, text := range map[string]string{
		"two lengths":                    begin + "Content-Length: 1\r\nContent-Length: " + fmt.Sprint(1+len(inner)) + "\r\n\r\nx" + inner,
		"two lengths in one line":        begin + "Content-Length: 1, 7\r\n\r\nx" + inner,
		"a length with a sign":           begin + "Content-Length: +1\r\n\r\nx" + inner,
		"another coding":                 begin + "Transfer-Encoding: xchunked\r\nContent-Length: 1\r\n\r\nx" + inner,
		"two codings":                    begin + "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n" + inner,
		"a coding behind a blank":        begin + "Transfer-Encoding : chunked\r\nContent-Length: 1\r\n\r\nx" + inner,
		"a folded header":                begin + "Transfer-Encoding:\r\n chunked\r\nX: y\r\n z\r\nContent-Length : 1\r\n\r\nx" + inner,
		"a line break in a header":       begin + "X-A: a\rContent-Length: 1\r\n\r\nx" + inner,
		"a null in a header":             begin + "X-A: a\x00b\r\nContent-Length: 1\r\n\r\nx" + inner,
		"a size of a chunk with a sign":  begin + "Transfer-Encoding: chunked\r\n\r\n+1\r\nx\r\n0\r\n\r\n" + inner,
		"two hosts":                      "POST /orders HTTP/1.1\r\nHost: h\r\nHost: i\r\nContent-Length: 1\r\n\r\nx",
		"no host":                        "POST /orders HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
		"a blank in the target":          "POST /orders /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx",
		"a header that is not a name":    begin + "X A: b\r\nContent-Length: 1\r\n\r\nx",
		"a body longer than it is said":  begin + "Content-Length: 7\r\n\r\nx",
		"a chunk longer than it is said": begin + "Transfer-Encoding: chunked\r\n\r\n9\r\nx\r\n",
	} {
		statuses := d.raw(text)
		if len(statuses) != 1 || statuses[0] < 400 {
			t.Errorf("%s: the answers are %v", name, statuses)
		}
	}
	if bodies := d.in.Bodies(); len(bodies) > 0 {
		t.Errorf("taken were %q", bodies)
	}
	// Where both are said the coding counts, and the connection is of no more use.
	statuses := d.raw(begin + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n")
	if bodies := d.in.Bodies(); len(statuses) != 1 || statuses[0] != http.StatusAccepted || fmt.Sprint(bodies) != "[x]" {
		t.Errorf("the answers are %v, taken were %q", statuses, bodies)
	}
}

// A proxy may read the last of two values, and the listener the first: which one a filter would see is in doubt.
func TestAValueThatComesTwiceIsRefused(t *testing.T) {
	t.Parallel()
	d := openDoor(t, `{"authentication": "none", "headers": {"X-Shop": "urn:p#Shop"}, "promoted_headers": {"X-Order": "urn:p#Order"},
		"query": {"from": "urn:p#From"}, "promoted_query": {"n": "urn:p#N"}}`)
	for what, r := range map[string]reply{
		"a header":            d.post("x", "X-Shop", "a", "X-Shop", "b"),
		"a promoted header":   d.post("x", "X-Order", "1", "X-Order", "1"),
		"a parameter":         d.do(http.MethodPost, d.address+"?from=a&from=b", strings.NewReader("x")),
		"a promoted one":      d.do(http.MethodPost, d.address+"?n=1&n=2", strings.NewReader("x")),
		"a query with faults": d.do(http.MethodPost, d.address+"?n=1;m=%zz", strings.NewReader("x")),
	} {
		if r.status != http.StatusBadRequest || r.body.Error == "" {
			t.Errorf("%s gives %d %q", what, r.status, r.body.Error)
		}
	}
	d.want(d.post("x", "X-Shop", "a", "X-Other", "b", "X-Other", "c"), http.StatusAccepted)
	if len(d.in.Bodies()) != 1 {
		t.Errorf("taken were %q", d.in.Bodies())
	}
}
