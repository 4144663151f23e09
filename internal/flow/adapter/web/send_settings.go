package web

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// sendSettings are those of a port.
type sendSettings struct {
	Authentication    string            `json:"authentication"`
	User              string            `json:"user"`
	BearerHeader      string            `json:"bearer_header"`
	HMAC              signature         `json:"hmac"`
	ClientCertificate bool              `json:"client_certificate"`
	Authorities       bool              `json:"authorities"`
	Method            string            `json:"method"`
	ContentType       string            `json:"content_type"`
	Headers           map[string]string `json:"headers"`
	IdempotencyHeader string            `json:"idempotency_header"`
	IdempotencyKey    string            `json:"idempotency_key"`
	Accepted          statuses          `json:"accepted"`
	Retried           statuses          `json:"retried"`
	Redirects         int               `json:"redirects"`
	Connections       int               `json:"connections"`
	ConnectTimeout    adapter.Duration  `json:"connect_timeout"`
	Timeout           adapter.Duration  `json:"timeout"`
	MaxAnswerBytes    int64             `json:"max_answer_bytes"`
}

func defaultSend() sendSettings {
	return sendSettings{
		Authentication: "none", BearerHeader: authorization, HMAC: defaultSignature(), Method: "POST", IdempotencyHeader: "Idempotency-Key",
		IdempotencyKey: "{MessageID}", Accepted: statuses{"2xx"}, Retried: statuses{"408", "425", "429", "5xx"}, Connections: 4,
		ConnectTimeout: adapter.Duration(10 * time.Second), Timeout: adapter.Duration(time.Minute),
		MaxAnswerBytes: 16 << 20,
	}
}

// statuses are those of answers: 429, or 5xx for all of a class.
type statuses []string

func (s *statuses) UnmarshalJSON(data []byte) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return fmt.Errorf("it is no list of statuses such as [429, 5xx]")
	}
	var read statuses
	for _, one := range raw {
		status := strings.ToLower(strings.Trim(string(one), `"`))
		class := strings.TrimSuffix(status, "xx")
		number, err := strconv.Atoi(status)
		if isClass := len(class) == 1 && class >= "1" && class <= "5"; !isClass && (err != nil || number < 100 || number > 599) {
			return fmt.Errorf("%s is no status; write one such as 429, or a class such as 5xx", one)
		}
		read = append(read, status)
	}
	*s = read
	return nil
}

func (s statuses) has(status int) bool {
	number := strconv.Itoa(status)
	return slices.Contains(s, number) || slices.Contains(s, number[:1]+"xx")
}

// ownHeaders are those that settings do not set: they belong to the connection, or have a setting of their own.
var ownHeaders = []string{
	"authorization", "connection", "content-length", "content-type", "expect", "host", "keep-alive", "proxy-authorization",
	"te", "trailer", "transfer-encoding", "upgrade",
}

// readSend reads the address and the settings of a port, and gives all that is wrong with them. has says which secrets there are.
func readSend(address string, raw json.RawMessage, has func(secret string) bool) (*url.URL, sendSettings, []adapter.Problem) {
	s := defaultSend()
	problems := adapter.CheckSettings(raw, &s)
	u, err := parseAddress(address)
	if err != nil {
		problems = append(problems, adapter.Problem{
			Path: []string{"address"}, Message: err.Error(), Remedy: "Write it such as https://erp.example/orders.",
		})
	}
	problems = append(problems, s.checkAuthentication(has)...)
	return u, s, append(problems, s.checkRequest()...)
}

func (s *sendSettings) checkAuthentication(has func(secret string) bool) []adapter.Problem {
	var problems []adapter.Problem
	need := func(secret, of string) {
		if !has(secret) {
			problems = append(problems, adapter.Problem{
				Path: []string{"secrets"}, Message: fmt.Sprintf("%s needs the secret %s", of, secret), Remedy: "Give it under secrets.",
			})
		}
	}
	switch s.Authentication {
	case "none":
	case "bearer":
		need(secretToken, "bearer")
	case "basic":
		need(secretPassword, "basic")
		if s.User == "" || strings.Contains(s.User, ":") {
			problems = append(problems, adapter.Problem{
				Path: []string{"settings", "user"}, Message: "the user has no name, or one with a colon", Remedy: "Write the name of the user.",
			})
		}
	case "hmac":
		need(secretKey, "hmac")
		problems = append(problems, s.HMAC.check(false)...)
	default:
		problems = append(problems, adapter.Problem{
			Path: []string{"settings", "authentication"}, Message: fmt.Sprintf("%q is no way of authentication", s.Authentication),
			Remedy: "Write bearer, hmac, basic or none.",
		})
	}
	if s.ClientCertificate {
		need(secretCertificate, "client_certificate")
		need(secretKeyOfTLS, "client_certificate")
	}
	if s.Authorities {
		need(secretAuthorities, "authorities")
	}
	return problems
}

func (s *sendSettings) checkRequest() []adapter.Problem {
	var problems []adapter.Problem
	wrong := func(message, remedy string, path ...string) {
		problems = append(problems, adapter.Problem{Path: append([]string{"settings"}, path...), Message: message, Remedy: remedy})
	}
	if !slices.Contains([]string{"POST", "PUT", "PATCH"}, s.Method) {
		wrong(fmt.Sprintf("%q carries no message", s.Method), "Write POST, PUT or PATCH.", "method")
	}
	if s.Redirects < 0 || s.Redirects > 10 {
		wrong("it is not from 0 to 10", "Write how many redirects are followed.", "redirects")
	}
	if s.Connections < 1 || s.Connections > 100 {
		wrong("it is not from 1 to 100", "Write how many requests a node sends at once.", "connections")
	}
	if s.MaxAnswerBytes < 1 || s.MaxAnswerBytes > 64<<20 {
		wrong("it is not from 1 to 67,108,864", "Write how many bytes an answer may have.", "max_answer_bytes")
	}
	if s.Timeout <= 0 || s.ConnectTimeout <= 0 {
		wrong("it is no time", `Write how long the whole request may take, such as "1 minute".`, "timeout")
	}
	if !isToken(s.IdempotencyHeader) && s.IdempotencyHeader != "" {
		wrong("it is no name of a header", `Write one, or "" for none.`, "idempotency_header")
	}
	if _, err := parseTemplate(s.IdempotencyKey); err != nil {
		wrong(err.Error(), templateRemedy, "idempotency_key")
	}
	for name, value := range s.Headers {
		if !isToken(name) || slices.Contains(ownHeaders, strings.ToLower(name)) {
			wrong("the header cannot be set", "Leave it out; content_type and authentication have settings.", "headers", name)
		}
		if _, err := parseTemplate(value); err != nil {
			wrong(err.Error(), templateRemedy, "headers", name)
		}
	}
	if hasControl(s.ContentType) {
		wrong("it has a line break or another control character", "Write a media type such as application/xml.", "content_type")
	}
	return problems
}
