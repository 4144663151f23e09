package web

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The paths under which a listener describes its locations, unless a location has them.
const (
	documentPath    = "/openapi.json"
	descriptionPath = "/openapi.html"
)

// The values of the setting openapi: who is shown what the location takes.
const (
	shownToNobody   = "nobody"
	shownToCallers  = "callers"
	shownToEveryone = "everyone"
)

// descriptionAge is how long the definitions of a location are used before the host is asked again.
const descriptionAge = 5 * time.Second

// description is a location as a client may see it.
type description struct {
	definitions

	isShown   bool   // whether the client may see it
	challenge string // how the client can identify itself, where it may not
}

// describe gives what a client may see of the location.
func (l *location) describe(r *http.Request) (d description, err error) {
	if l.settings.OpenAPI == shownToCallers {
		empty := func() (io.ReadCloser, error) { return http.NoBody, nil }
		_, known, err := l.sender.caller(r.Context(), r, empty)
		if err != nil {
			return d, fmt.Errorf("identify a caller of location %q: %w", l.Name, err)
		}
		if !known {
			return description{challenge: l.sender.challenge()}, nil
		}
	}
	d.isShown = true
	d.definitions, err = l.defined()
	return d, err
}

// defined gives the definitions of the location, as they are or were a moment ago.
func (l *location) defined() (definitions, error) {
	l.describing.Lock()
	defer l.describing.Unlock()
	if time.Now().Before(l.definedUntil) {
		return l.definitions, nil
	}
	if l.Describe == nil {
		return definitions{}, fmt.Errorf("describe location %q: its host gives no definitions", l.Name)
	}
	written, err := l.Describe(l.settings.MessageType)
	if err != nil {
		return definitions{}, fmt.Errorf("describe location %q: %w", l.Name, err)
	}
	var fresh definitions
	if err := json.Unmarshal(written, &fresh); err != nil {
		return definitions{}, fmt.Errorf("read the definitions of location %q: %w", l.Name, err)
	}
	l.definitions, l.definedUntil = fresh, time.Now().Add(descriptionAge)
	return fresh, nil
}

// isDescribed reports whether the listener describes any of its locations to anybody.
func (l *listener) isDescribed() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, r := range l.routes {
		if r.describe != nil {
			return true
		}
	}
	return false
}

// describe answers with a document of OpenAPI, or a page of it, of those locations that the client may see.
func (l *listener) describe(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout))
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "a description is read with GET", 0)
		return
	}
	shown, challenges, err := l.shownTo(r)
	if err != nil {
		l.logger.Warn("the locations cannot be described", "address", l.address, "error", err)
		refuse(w, http.StatusServiceUnavailable, "nothing can be described now", throttledPause)
		return
	}
	if len(shown) == 0 {
		for _, challenge := range challenges {
			w.Header().Add("WWW-Authenticate", challenge)
		}
		refuse(w, http.StatusUnauthorized, "the caller is not identified", 0)
		return
	}
	document, err := documentOf(shown)
	if err != nil {
		l.logger.Warn("the locations cannot be described", "address", l.address, "error", err)
		refuse(w, http.StatusServiceUnavailable, "nothing can be described now", throttledPause)
		return
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if r.URL.Path == documentPath {
		header.Set("Content-Type", "application/json")
		_, _ = w.Write(document) //nolint:gosec // it is JSON, which no browser takes for a page
		return
	}
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "no-referrer")
	if err := writeDescription(w, document); err != nil {
		l.logger.Debug("a page was not written", "address", l.address, "error", err)
	}
}

// shownTo gives the definitions of those locations that a client may see, by their names, and how it can identify itself at the others.
func (l *listener) shownTo(r *http.Request) (shown []definitions, challenges []string, err error) {
	l.mu.RLock()
	routes := slices.SortedFunc(maps.Values(l.routes), func(a, b *route) int { return strings.Compare(a.location, b.location) })
	l.mu.RUnlock()
	for _, to := range routes {
		if to.describe == nil {
			continue
		}
		d, err := to.describe(r)
		switch {
		case err != nil:
			return nil, nil, err
		case d.isShown:
			shown = append(shown, d.definitions)
		case !slices.Contains(challenges, d.challenge):
			challenges = append(challenges, d.challenge)
		}
	}
	return shown, challenges, nil
}

// documentOf describes locations of one listener. Addresses are those at which the document is read: behind a proxy too.
func documentOf(shown []definitions) (json.RawMessage, error) {
	page := newAPIPage()
	page.isServed = true
	applications := map[string]bool{}
	for _, d := range shown {
		page.definitions = d
		for _, name := range slices.Sorted(maps.Keys(d.Locations)) {
			if err := page.add(name, d.Locations[name], ""); err != nil {
				return nil, err
			}
			applications[d.Ports[d.Locations[name].Port].Application] = true
		}
	}
	title := "Integration"
	if len(applications) == 1 {
		title = slices.Collect(maps.Keys(applications))[0]
	}
	return page.document(title, "1")
}
