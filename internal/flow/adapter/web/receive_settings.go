package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// The names of secrets that the settings do not name.
const (
	secretCertificate = "certificate"
	secretKeyOfTLS    = "private_key"
	secretToken       = "token"
	secretPassword    = "password"
	secretKey         = "key"
)

// receiveSettings are those of a location.
type receiveSettings struct {
	Authentication    string            `json:"authentication"`
	Callers           map[string]names  `json:"callers"`
	BearerHeader      string            `json:"bearer_header"`
	HMAC              signature         `json:"hmac"`
	Methods           []string          `json:"methods"`
	ContentTypes      []string          `json:"content_types"`
	MessageType       string            `json:"message_type"`
	Idempotency       string            `json:"idempotency"`
	IdempotencyHeader string            `json:"idempotency_header"`
	Headers           map[string]string `json:"headers"`
	PromotedHeaders   map[string]string `json:"promoted_headers"`
	Query             map[string]string `json:"query"`
	PromotedQuery     map[string]string `json:"promoted_query"`
	OpenAPI           string            `json:"openapi"`
	SuspendedStatus   int               `json:"suspended_status"`
	MaxBytes          int64             `json:"max_bytes"`
	MaxRequests       int               `json:"max_requests"`
	ReadTimeout       adapter.Duration  `json:"read_timeout"`
	DrainTimeout      adapter.Duration  `json:"drain_timeout"`
}

func defaultReceive() receiveSettings {
	return receiveSettings{
		BearerHeader: authorization, HMAC: defaultSignature(), Methods: []string{"POST"}, Idempotency: "optional",
		IdempotencyHeader: "Idempotency-Key", OpenAPI: shownToNobody, SuspendedStatus: 202, MaxBytes: 16 << 20, MaxRequests: 100,
		ReadTimeout: adapter.Duration(time.Minute), DrainTimeout: adapter.Duration(30 * time.Second),
	}
}

// names is one name, or a list of them.
type names []string

func (n *names) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*n = names{one}
		return nil
	}
	var several []string
	if err := json.Unmarshal(data, &several); err != nil {
		return errors.New("it is neither the name of a secret nor a list of such names")
	}
	*n = several
	return nil
}

// readReceive reads the address and the settings of a location, and gives all that is wrong with them. has says which secrets there are.
func readReceive(address string, raw json.RawMessage, has func(secret string) bool) (*url.URL, receiveSettings, []adapter.Problem) {
	s := defaultReceive()
	problems := adapter.CheckSettings(raw, &s)
	u, err := parseAddress(address)
	if err == nil {
		err = checkPath(u)
	}
	if err != nil {
		problems = append(problems, adapter.Problem{
			Path: []string{"address"}, Message: err.Error(), Remedy: "Write it such as http://127.0.0.1:8080/orders.",
		})
	}
	if u != nil && u.Scheme == "https" && (!has(secretCertificate) || !has(secretKeyOfTLS)) {
		problems = append(problems, adapter.Problem{
			Path: []string{"secrets"}, Message: "https needs a certificate and its key",
			Remedy: "Give the secrets certificate and private_key, each of them the file of a PEM.",
		})
	}
	if alone := map[string]string{"bearer": secretToken, "hmac": secretKey}[s.Authentication]; s.Callers == nil && alone != "" {
		s.Callers = map[string]names{alone: {alone}}
	}
	problems = append(problems, s.checkAuthentication(has)...)
	return u, s, append(problems, s.checkLimits()...)
}

// parseAddress reads a web address; the error does not show it, since it may have a secret in it.
func parseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("the address cannot be read")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("the address does not begin with http:// or https:// and a host")
	case u.User != nil:
		return nil, errors.New("the address has a user name in it")
	case u.Fragment != "":
		return nil, errors.New("the address has a fragment")
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

func checkPath(u *url.URL) error {
	if u.RawQuery != "" || u.ForceQuery {
		return errors.New("the address of a location has no query")
	}
	if u.RawPath != "" || path.Clean(u.Path) != u.Path {
		return errors.New("the path of the address is written with escapes, dots or double slashes")
	}
	return nil
}

// hostPort gives host:port of an address.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func (s *receiveSettings) checkAuthentication(has func(secret string) bool) []adapter.Problem {
	var problems []adapter.Problem
	switch s.Authentication {
	case "none":
		return nil
	case "":
		return []adapter.Problem{{
			Path: []string{"settings", "authentication"}, Message: "nothing says who may call the location",
			Remedy: `Write bearer, hmac or basic; or "authentication: none" if you mean that everybody may.`,
		}}
	case "bearer", "basic":
	case "hmac":
		problems = s.HMAC.check(true)
	default:
		return []adapter.Problem{{
			Path: []string{"settings", "authentication"}, Message: fmt.Sprintf("%q is no way of authentication", s.Authentication),
			Remedy: "Write bearer, hmac, basic or none.",
		}}
	}
	if len(s.Callers) == 0 {
		problems = append(problems, adapter.Problem{
			Path: []string{"settings", "callers"}, Message: "nobody may call the location",
			Remedy: "Write the user names of callers, each with the name of the secret that is the password.",
		})
	}
	for caller, of := range s.Callers {
		for _, secret := range of {
			if !has(secret) {
				problems = append(problems, adapter.Problem{
					Path: []string{"settings", "callers", caller}, Message: fmt.Sprintf("the location has no secret %q", secret),
					Remedy: "Give it under secrets, or name another one.",
				})
			}
		}
		if len(of) == 0 {
			problems = append(problems, adapter.Problem{
				Path: []string{"settings", "callers", caller}, Message: "the caller has no secret", Remedy: "Name one of the location.",
			})
		}
	}
	return problems
}

func (s *receiveSettings) checkLimits() []adapter.Problem {
	var problems []adapter.Problem
	wrong := func(name, message, remedy string) {
		problems = append(problems, adapter.Problem{Path: []string{"settings", name}, Message: message, Remedy: remedy})
	}
	if !slices.Contains([]string{"optional", "required", "ignored"}, s.Idempotency) {
		wrong("idempotency", fmt.Sprintf("%q is not known", s.Idempotency), "Write optional, required or ignored.")
	}
	problems = append(problems, adapter.OneOf("openapi", s.OpenAPI, shownToNobody, shownToCallers, shownToEveryone)...)
	if s.SuspendedStatus != 202 && s.SuspendedStatus != 422 {
		wrong("suspended_status", "it is neither 202 nor 422", "Write 202 to accept bad input, which an operator mends, or 422.")
	}
	if s.MaxBytes < 1 {
		wrong("max_bytes", "it is below 1", "Write how many bytes a body may have.")
	}
	if s.MaxRequests < 1 || s.MaxRequests > 10000 {
		wrong("max_requests", "it is not from 1 to 10,000", "Write how many requests may be worked on at once.")
	}
	if s.ReadTimeout <= 0 {
		wrong("read_timeout", "it is no time", `Write how long a client may take to send its body, such as "1 minute".`)
	}
	if len(s.Methods) == 0 {
		wrong("methods", "there is none", "Write POST, PUT or both.")
	}
	for _, method := range s.Methods {
		if !slices.Contains([]string{"POST", "PUT", "PATCH"}, method) {
			wrong("methods", fmt.Sprintf("%q brings no message", method), "Write POST, PUT or PATCH.")
		}
	}
	for name, properties := range map[string]map[string]string{
		"headers": s.Headers, "promoted_headers": s.PromotedHeaders, "query": s.Query, "promoted_query": s.PromotedQuery,
	} {
		for from, property := range properties {
			if !strings.Contains(property, "#") {
				problems = append(problems, adapter.Problem{
					Path: []string{"settings", name, from}, Message: fmt.Sprintf("%q is no property", property),
					Remedy: "Write namespace#Name.",
				})
			}
			if strings.HasSuffix(name, "headers") && (isSecretHeader(from) || s.hasTokenIn(from)) {
				problems = append(problems, adapter.Problem{
					Path: []string{"settings", name, from}, Message: "the header carries a secret", Remedy: "Leave it out.",
				})
			}
		}
	}
	return problems
}

// hasTokenIn says whether a header has the token of the caller.
func (s *receiveSettings) hasTokenIn(header string) bool {
	return s.Authentication == "bearer" && strings.EqualFold(s.BearerHeader, header)
}

// isSecretHeader says whether a header must not become a property.
func isSecretHeader(name string) bool {
	return slices.Contains([]string{"authorization", "proxy-authorization", "cookie"}, strings.ToLower(name))
}
