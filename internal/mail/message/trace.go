package message

import (
	"crypto/rand"
	"encoding/hex"
	"net/netip"
	"strings"
	"time"
)

// Trace is the content of a Received field about one hop.
type Trace struct {
	Helo, PeerName string
	Peer           netip.Addr
	By             string // our name
	With           string // the protocol, as registered: ESMTPSA
	TLS            string // version and cipher, or nothing
	ID             string
	For            string // the recipient, where there is one only: others are nobody's business
	At             time.Time
}

// dateLayout is that of RFC 5322.
const dateLayout = "Mon, 02 Jan 2006 15:04:05 -0700"

// Field gives the Received field.
func (t Trace) Field() Field {
	var value strings.Builder
	if t.Peer.IsValid() {
		name := t.PeerName
		if name == "" {
			name = "unknown"
		}
		helo := printable(t.Helo)
		if helo == "" {
			helo = "unknown"
		}
		value.WriteString("from " + helo + " (" + printable(name) + " [" + literal(t.Peer) + "])\r\n\t")
	}
	value.WriteString("by " + printable(t.By) + " with " + printable(t.With))
	if t.TLS != "" {
		value.WriteString(" (" + printable(t.TLS) + ")")
	}
	value.WriteString("\r\n\tid " + printable(t.ID))
	if t.For != "" {
		value.WriteString(" for <" + foldedOnly(t.For) + ">")
	}
	value.WriteString(";\r\n\t" + t.At.Format(dateLayout))
	return NewField("Received", value.String())
}

func literal(ip netip.Addr) string {
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		return "IPv6:" + ip.String()
	}
	return ip.String()
}

// printable takes out what could end a word or a comment of a Received field.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || strings.ContainsRune(`();<>"\`, r) {
			return -1
		}
		return r
	}, text)
}

// Hops counts through how many hosts a message has come.
func (h Header) Hops() int {
	return len(h.All("Received"))
}

// HopsBy counts how often it has come through hosts whose name is one of some. Names are given in lower case, without the dot of the root.
func (h Header) HopsBy(isOne func(name string) bool) (hops int) {
	for _, field := range h.All("Received") {
		words := strings.Fields(field.Value())
		for i, word := range words {
			if strings.EqualFold(word, "by") && i+1 < len(words) && isOne(strings.ToLower(strings.TrimRight(words[i+1], ".;"))) {
				hops++
				break
			}
		}
	}
	return hops
}

// NewMessageID makes an identifier for a message that came without one.
func NewMessageID(host string) string {
	return "<" + Token() + "@" + printable(host) + ">"
}

// Token gives 16 random bytes in hexadecimal.
func Token() string {
	var token [16]byte
	_, _ = rand.Read(token[:]) // never fails
	return hex.EncodeToString(token[:])
}

// Completed gives a header that has a Message-Id and a Date, as submission adds them. A field that is there and is broken is replaced.
func (h Header) Completed(host string, now time.Time) Header {
	if !isMessageID(h.MessageID()) {
		h = append(h.Without(func(f Field) bool { return f.Is("Message-Id") }), NewField("Message-Id", NewMessageID(host)))
	}
	if _, isDate := ParseDate(h.Value("Date")); !isDate {
		h = append(h.Without(func(f Field) bool { return f.Is("Date") }), NewField("Date", now.Format(dateLayout)))
	}
	return h
}

func isMessageID(text string) bool {
	inner, hasBegin := strings.CutPrefix(text, "<")
	inner, hasEnd := strings.CutSuffix(inner, ">")
	at := strings.IndexByte(inner, '@')
	return hasBegin && hasEnd && at > 0 && at < len(inner)-1 && !strings.ContainsAny(inner, " \t<>")
}

// WithoutReturnPath gives the header without Return-Path: only who delivers finally may write it.
func (h Header) WithoutReturnPath() Header {
	return h.Without(func(f Field) bool { return f.Is("Return-Path") })
}
