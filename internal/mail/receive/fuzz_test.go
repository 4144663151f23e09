package receive

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/netip"
	"testing"
	"time"
)

// unstuffed reads message data in the slow way: the reference for readData.
func unstuffed(data []byte) (text []byte, isBare, isEnded bool) {
	whole := append([]byte("\r\n"), data...)
	end := bytes.Index(whole, []byte("\r\n.\r\n"))
	if end < 0 {
		return nil, false, false
	}
	whole = whole[:end+2]
	pure := bytes.ReplaceAll(whole, []byte("\r\n"), nil)
	return bytes.ReplaceAll(whole, []byte("\r\n."), []byte("\r\n"))[2:], bytes.ContainsAny(pure, "\r\n") || bytes.Contains(whole, []byte("\r\r\n")), true
}

func FuzzData(f *testing.F) {
	for _, text := range []string{".\r\n", "a\r\n.\r\n", "\n.\n\r\n.\r\nNOOP\r\n", "..\r\n.a\r\n\r\r\n.\r\n", "\r.\r\n.\r\n", "\r\n\r.\r\n", ".\r.\r\n\r\n.\r\n", "a\r\r\n.\r\n", "a\r\nb\r\n\r\n.c\r\nd\re\r\n.\r\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, isBare, isEnded := unstuffed(data)
		for _, size := range []int{16, 16384} { // lines of more than the buffer are refused, and their end is found all the same
			var got bytes.Buffer
			in := bufio.NewReaderSize(bytes.NewReader(data), size)
			found, err := readData(in, &got, Limits{})
			if isEnded != (err == nil) {
				t.Fatalf("%q ends: %v, want %v", data, err, isEnded)
			}
			if !isEnded {
				continue
			}
			if !found.isTooLong && (!bytes.Equal(got.Bytes(), want) || found.isBare != isBare) {
				t.Errorf("%q: %q, bare %v; want %q, bare %v", data, got.Bytes(), found.isBare, want, isBare)
			}
			rest, _ := io.ReadAll(in)
			if end := bytes.Index(append([]byte("\r\n"), data...), []byte("\r\n.\r\n")) + 3; len(rest) != len(data)-end {
				t.Errorf("%q: %q is left", data, rest)
			}
			checker := &lineChecker{sink: io.Discard}
			for i := range want {
				_, _ = checker.Write(want[i : i+1])
			}
			if checked, _ := checker.end(); size > 16 && checked != found && !found.isBare {
				t.Errorf("%q: by data %+v, by chunks %+v", want, found, checked)
			}
		}
	})
}

// Messages that a connector normalizes have no bare line end left.
func FuzzNormalizedData(f *testing.F) {
	f.Add([]byte("a\nb\rc\r\r\n.\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got bytes.Buffer
		checker := &lineChecker{sink: &got}
		if _, err := readData(bufio.NewReaderSize(bytes.NewReader(data), 16384), checker, Limits{IsNormalizing: true}); err != nil {
			return
		}
		if found, isComplete := checker.end(); found.isBare || !isComplete {
			t.Errorf("%q became %q", data, got.Bytes())
		}
	})
}

func FuzzProxyHeader(f *testing.F) {
	f.Add([]byte("PROXY TCP4 192.0.2.7 127.0.0.1 4711 25\r\n"))
	f.Add([]byte("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\x7f\x00\x00\x01\x12\x67\x00\x19"))
	f.Fuzz(func(t *testing.T, data []byte) {
		peer, err := readProxyHeader(bytes.NewReader(data))
		if err != nil && (!errors.Is(err, errProxyHeader) || peer.IsValid()) || peer.Addr().Is4In6() || peer.Addr().Zone() != "" {
			t.Errorf("%q: %v, %v", data, peer, err)
		}
	})
}

func FuzzVerifier(f *testing.F) {
	f.Add("SCRAM-SHA-256$4096:c2FsdA==$AAAA:AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		if v, err := ParseVerifier(text); err == nil && (len(v.StoredKey) != 32 || v.Iterations < 1) {
			t.Errorf("%q: %+v", text, v)
		}
	})
}

func TestAccountsForgetWhatNoLimitNeeds(t *testing.T) {
	t.Parallel()
	a, c, now := newAccounts(), NewConnector("c", Client), time.Unix(1e9, 0)
	for i := range 1000 {
		source := sourceOf(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
		a.message(c, source, "", 0, now)
		a.authFailed(c.Limits, source, "ann", now)
		if refused := a.connect(c, NodeLimits{}, source, now); refused != noLimit {
			t.Fatal(refused)
		}
		a.disconnect(c, source)
	}
	later := now.Add(2 * time.Hour)
	a.connect(c, NodeLimits{}, netip.MustParsePrefix("10.0.0.1/32"), later)
	if len(a.messages) != 0 || len(a.failures.sources) != 0 || len(a.bySource) != 1 || a.open != 1 {
		t.Errorf("left are %d sources of messages, %d of failures, %d of connections", len(a.messages), len(a.failures.sources), len(a.bySource))
	}
	if one, other := sourceOf(netip.MustParseAddr("2001:db8::1")), sourceOf(netip.MustParseAddr("2001:db8::ffff:1")); one != other {
		t.Errorf("%s and %s are two sources", one, other)
	}
}
