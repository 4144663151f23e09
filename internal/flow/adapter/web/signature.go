package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// signature is how a body is signed with a key that both sides have.
type signature struct {
	Header    string `json:"header"`
	Algorithm string `json:"algorithm"` // sha256, sha512
	Encoding  string `json:"encoding"`  // hex, base64
	// Prefix stands before the signature. A header may have several signatures, separated by blanks or, unless the prefix has one, commas.
	Prefix string `json:"prefix"`
	// Signed is the text that is hashed, with {body}, {timestamp} and {header:NAME} in it.
	Signed          string           `json:"signed"`
	TimestampHeader string           `json:"timestamp_header"` // which has the time, in seconds; none without it
	TimestampPrefix string           `json:"timestamp_prefix"` // or the element of Header that has it
	Tolerance       adapter.Duration `json:"tolerance"`
	KeyEncoding     string           `json:"key_encoding"` // text, hex, base64
}

func defaultSignature() signature {
	return signature{
		Header: "X-Signature-256", Algorithm: "sha256", Encoding: "hex", Prefix: "sha256=", Signed: "{body}",
		Tolerance: adapter.Duration(5 * time.Minute), KeyEncoding: "text",
	}
}

var algorithms = map[string]func() hash.Hash{"sha256": sha256.New, "sha512": sha512.New}

// check gives what is wrong; verifies says that signatures are verified and not made.
func (s *signature) check(verifies bool) []adapter.Problem {
	var problems []adapter.Problem
	wrong := func(name, message, remedy string) {
		problems = append(problems, adapter.Problem{Path: []string{"settings", "hmac", name}, Message: message, Remedy: remedy})
	}
	if algorithms[s.Algorithm] == nil {
		wrong("algorithm", fmt.Sprintf("%q is not known", s.Algorithm), "Write sha256 or sha512.")
	}
	if s.Encoding != "hex" && s.Encoding != "base64" {
		wrong("encoding", fmt.Sprintf("%q is not known", s.Encoding), "Write hex or base64.")
	}
	if !slices.Contains([]string{"text", "hex", "base64"}, s.KeyEncoding) {
		wrong("key_encoding", fmt.Sprintf("%q is not known", s.KeyEncoding), "Write text, hex or base64.")
	}
	if !isToken(s.Header) {
		wrong("header", "it is no name of a header", "Write the header that has the signature.")
	}
	parts, err := s.parts()
	if err != nil {
		wrong("signed", err.Error(), "Write a text with {body}, {timestamp} and {header:NAME}, such as {timestamp}.{body}.")
		return problems
	}
	if !slices.Contains(parts, part{kind: "body"}) {
		wrong("signed", "the body is not signed", "Write {body} in it.")
	}
	if verifies && !areApart(parts) {
		wrong("signed", "nothing says where a header ends",
			"Write a sign between a header and what stands beside it, such as {header:Id}.{body}.")
	}
	hasTime := s.TimestampHeader != "" || s.TimestampPrefix != ""
	if signsTime := slices.Contains(parts, part{kind: "timestamp"}); hasTime != signsTime {
		wrong("signed", "the time has to be both sent and signed",
			"Write timestamp_header or timestamp_prefix, and {timestamp} in signed; or none of them.")
	}
	if s.TimestampHeader != "" && s.TimestampPrefix != "" {
		wrong("timestamp_prefix", "the time is in a header of its own", "Leave one of timestamp_header and timestamp_prefix out.")
	}
	if !s.isReadable() {
		wrong("prefix", "signature and time cannot be told apart",
			"Write prefixes without blanks; beside timestamp_prefix one without a comma, of which none begins with the other.")
	}
	if verifies && hasTime && s.Tolerance <= 0 {
		wrong("tolerance", "no request is that new", `Write how old a request may be, such as "5 minutes".`)
	}
	return problems
}

// isReadable says whether the elements of a header can be told apart by their prefixes.
func (s *signature) isReadable() bool {
	if s.TimestampPrefix == "" {
		return !strings.ContainsAny(s.Prefix, " \t")
	}
	return !strings.ContainsAny(s.Prefix+s.TimestampPrefix, " \t,") &&
		!strings.HasPrefix(s.Prefix, s.TimestampPrefix) && !strings.HasPrefix(s.TimestampPrefix, s.Prefix)
}

// part is a piece of what is signed.
type part struct{ kind, text string }

func (s *signature) parts() ([]part, error) {
	var parts []part
	rest := s.Signed
	for rest != "" {
		literal, after, found := strings.Cut(rest, "{")
		if literal != "" {
			parts = append(parts, part{"text", literal})
		}
		if !found {
			break
		}
		name, behind, closed := strings.Cut(after, "}")
		header, isHeader := strings.CutPrefix(name, "header:")
		switch {
		case !closed:
			return nil, errors.New("a brace is not closed")
		case name == "body", name == "timestamp":
			parts = append(parts, part{kind: name})
		case isHeader && isToken(header):
			parts = append(parts, part{"header", header})
		default:
			return nil, fmt.Errorf("{%s} is not known", name)
		}
		rest = behind
	}
	return parts, nil
}

// areApart says whether a text stands between each header and what is beside it.
func areApart(parts []part) bool {
	for i := range parts[:max(len(parts)-1, 0)] {
		a, b := parts[i].kind, parts[i+1].kind
		if (a == "header" || b == "header") && a != "text" && b != "text" {
			return false
		}
	}
	return true
}

// isPlain says whether the headers of a request end where they are signed to end. One that has the sign beside it in itself does not: the
// same signature would be that of another header and another body.
func (s *signature) isPlain(header http.Header) bool {
	parts, err := s.parts()
	if err != nil {
		return false
	}
	for i, p := range parts {
		if p.kind != "header" {
			continue
		}
		value := header.Get(p.text)
		if i > 0 && strings.IndexByte(value, lastByte(parts[i-1].text)) >= 0 ||
			i+1 < len(parts) && strings.IndexByte(value, parts[i+1].text[0]) >= 0 {
			return false
		}
	}
	return true
}

func lastByte(text string) byte { return text[len(text)-1] }

// sum gives the signature of a body, as bytes.
func (s *signature) sum(key []byte, header http.Header, timestamp string, body func() (io.ReadCloser, error)) ([]byte, error) {
	parts, err := s.parts()
	if err != nil {
		return nil, err
	}
	mac := hmac.New(algorithms[s.Algorithm], key)
	for _, p := range parts {
		switch p.kind {
		case "text":
			_, _ = io.WriteString(mac, p.text)
		case "timestamp":
			_, _ = io.WriteString(mac, timestamp)
		case "header":
			_, _ = io.WriteString(mac, header.Get(p.text))
		default:
			reader, err := body()
			if err != nil {
				return nil, err
			}
			_, copied := io.Copy(mac, reader)
			if err := errors.Join(copied, reader.Close()); err != nil {
				return nil, err
			}
		}
	}
	return mac.Sum(nil), nil
}

// key gives the bytes of a secret.
func (s *signature) key(secret string) ([]byte, error) {
	var key []byte
	var err error
	switch s.KeyEncoding {
	case "hex":
		key, err = hex.DecodeString(strings.TrimSpace(secret))
	case "base64":
		key, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(secret), "whsec_"))
	default:
		key = []byte(secret)
	}
	if err != nil || len(key) == 0 {
		// The error would show a part of the key.
		return nil, fmt.Errorf("the secret is empty, or no %s", s.KeyEncoding)
	}
	return key, nil
}

// elements gives what a header of signatures consists of.
func (s *signature) elements(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool {
		return r == ' ' || r == '\t' || r == ',' && !strings.Contains(s.Prefix, ",")
	})
}

// given reads the signatures that a request has, and the time that it says.
func (s *signature) given(header http.Header) (signatures [][]byte, timestamp string) {
	timestamp = header.Get(s.TimestampHeader)
	for _, element := range s.elements(header.Get(s.Header)) {
		if at, ok := strings.CutPrefix(element, s.TimestampPrefix); ok && s.TimestampPrefix != "" {
			timestamp = at
			continue
		}
		encoded, ok := strings.CutPrefix(element, s.Prefix)
		if !ok || len(signatures) == signaturesMax {
			continue
		}
		decode := hex.DecodeString
		if s.Encoding == "base64" {
			decode = base64.StdEncoding.DecodeString
		}
		if value, err := decode(encoded); err == nil {
			signatures = append(signatures, value)
		}
	}
	return signatures, timestamp
}

// signaturesMax bounds how many signatures of a request are compared.
const signaturesMax = 8

// isTimely says whether the time of a request is near enough to now. Without a time in requests all are.
func (s *signature) isTimely(timestamp string, now time.Time) bool {
	if s.TimestampHeader == "" && s.TimestampPrefix == "" {
		return true
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return false
	}
	return now.Sub(time.Unix(seconds, 0)).Abs() <= time.Duration(s.Tolerance)
}

// written gives the headers of a signature that was made.
func (s *signature) written(sum []byte, timestamp string) map[string]string {
	encoded := hex.EncodeToString(sum)
	if s.Encoding == "base64" {
		encoded = base64.StdEncoding.EncodeToString(sum)
	}
	headers := map[string]string{s.Header: s.Prefix + encoded}
	switch {
	case s.TimestampHeader != "":
		headers[s.TimestampHeader] = timestamp
	case s.TimestampPrefix != "":
		headers[s.Header] = s.TimestampPrefix + timestamp + "," + s.Prefix + encoded
	}
	return headers
}

// isToken says whether a text may be the name of a header.
func isToken(name string) bool {
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`()<>@,;:\"/[]?={}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}
