package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net/http"
	"strings"
	"time"
)

const authorization = "Authorization"

// authenticator finds who has sent a request.
type authenticator struct {
	settings *receiveSettings
	secrets  *secrets
	now      func() time.Time
}

// needsBody says whether the body decides who sent it.
func (a *authenticator) needsBody() bool { return a.settings.Authentication == "hmac" }

// caller gives who has sent a request; ok is false for one that nobody has who may. All secrets are compared, each in constant time, so
// that the time of an answer says nothing. body is nil unless the body decides.
func (a *authenticator) caller(ctx context.Context, r *http.Request, body func() (io.ReadCloser, error)) (who string, ok bool, err error) {
	switch a.settings.Authentication {
	case "none":
		return "", true, nil
	case "bearer":
		return a.find(ctx, func(string) bool { return true }, a.bearer(r))
	case "basic":
		user, password, _ := r.BasicAuth()
		return a.find(ctx, func(caller string) bool { return isSame(caller, user) }, password)
	case "hmac":
		return a.signer(ctx, r, body)
	}
	return "", false, nil
}

// bearer gives the token of a request, empty where it has none.
func (a *authenticator) bearer(r *http.Request) string {
	value := r.Header.Get(a.settings.BearerHeader)
	if !strings.EqualFold(a.settings.BearerHeader, authorization) {
		return value
	}
	scheme, token, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// find gives the caller whose secret is given, and of whom is says true. No secret is empty.
func (a *authenticator) find(ctx context.Context, is func(caller string) bool, given string) (who string, ok bool, err error) {
	for caller, of := range a.settings.Callers {
		for _, name := range of {
			secret, err := a.secrets.get(ctx, name)
			if err != nil {
				return "", false, err
			}
			if same, fits := isSame(secret, given), is(caller); same && fits {
				who, ok = caller, true
			}
		}
	}
	return who, ok, nil
}

// mayBeSigned says whether a request has a signature of now, before its body is read: nobody else has a large one kept.
func (a *authenticator) mayBeSigned(r *http.Request) bool {
	signatures, timestamp := a.settings.HMAC.given(r.Header)
	return len(signatures) > 0 && a.settings.HMAC.isTimely(timestamp, a.now()) && a.settings.HMAC.isPlain(r.Header)
}

// signer gives the caller whose key has signed a request.
func (a *authenticator) signer(ctx context.Context, r *http.Request, body func() (io.ReadCloser, error)) (who string, ok bool, err error) {
	scheme := &a.settings.HMAC
	if !a.mayBeSigned(r) {
		return "", false, nil
	}
	signatures, timestamp := scheme.given(r.Header)
	for caller, of := range a.settings.Callers {
		for _, name := range of {
			secret, err := a.secrets.get(ctx, name)
			if err != nil {
				return "", false, err
			}
			key, err := scheme.key(secret)
			if err != nil {
				return "", false, err
			}
			sum, err := scheme.sum(key, r.Header, timestamp, body)
			if err != nil {
				return "", false, err
			}
			for _, given := range signatures {
				if subtle.ConstantTimeCompare(sum, given) == 1 {
					who, ok = caller, true
				}
			}
		}
	}
	return who, ok, nil
}

// isSame compares in a time that depends on neither text.
func isSame(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// challenge gives the header WWW-Authenticate of an answer of 401.
func (a *authenticator) challenge() string {
	switch a.settings.Authentication {
	case "basic":
		return `Basic realm="parley", charset="UTF-8"`
	case "bearer":
		return "Bearer"
	}
	return "Signature"
}
