package console

import (
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
)

// policy lets a page load what the console itself serves, and nothing else: no script in a page, no other origin, no frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// guard is in front of every page: headers, the size of forms, requests that another site makes, and panics.
func (c *Console) guard(next http.Handler) http.Handler {
	// A browser says where a request comes from; what another site sends is refused before anything is read.
	protection := http.NewCrossOriginProtection()
	guarded := protection.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if c.config.Secure {
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if !c.config.Secure && !isLocalName(request.Host) {
			http.Error(w, "This console is reached as 127.0.0.1, [::1] or localhost alone.", http.StatusMisdirectedRequest)
			return
		}
		request.Body = http.MaxBytesReader(w, request.Body, formBytesMost)
		defer func() {
			if fault := recover(); fault != nil {
				c.config.Logger.Error("a page failed", "path", request.URL.Path, "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
				http.Error(w, "This page failed; the log of the console has the reason.", http.StatusInternalServerError)
			}
		}()
		guarded.ServeHTTP(w, request)
	})
}

// handler shows a page to one who is logged in.
type handler func(w http.ResponseWriter, request *http.Request, s *session) error

// page asks for a session before it calls a handler, and shows the error that the handler gives.
func (c *Console) page(show handler) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		s := c.sessions.find(request)
		if s == nil {
			c.askToLogIn(w, request)
			return
		}
		if err := show(w, request, s); err != nil {
			c.showError(w, request, s, err)
		}
	}
}

// act is page for what changes something: it asks for the token of the session too.
func (c *Console) act(do handler) http.HandlerFunc {
	return c.page(func(w http.ResponseWriter, request *http.Request, s *session) error {
		if err := parseForm(request); err != nil {
			return err
		}
		if !s.fits(request.PostFormValue(tokenField)) {
			return refused{http.StatusForbidden, "This form is of a session that has ended. Go back, load the page again and repeat it."}
		}
		if s.isReadOnly {
			return refused{http.StatusForbidden, "This console only shows. Its operator started it with --read-only."}
		}
		return do(w, request, s)
	})
}

// parseForm reads the form of a request, which is one that a page of the console sends.
func parseForm(request *http.Request) error {
	kind, _, _ := mime.ParseMediaType(request.Header.Get("Content-Type"))
	if kind != "application/x-www-form-urlencoded" {
		return refused{http.StatusUnsupportedMediaType, "The console takes forms, and nothing else."}
	}
	err := request.ParseForm()
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return refused{http.StatusRequestEntityTooLarge, fmt.Sprintf("This form is larger than %s.", formatSize(formBytesMost))}
	}
	if err != nil {
		return refused{http.StatusBadRequest, "This form cannot be read."}
	}
	return nil
}

// isLocalName reports whether the name by which a browser reaches the console is one of this machine. A name of elsewhere that leads here
// makes its pages of the same origin as ours.
func isLocalName(host string) bool {
	name := host
	if split, _, err := net.SplitHostPort(host); err == nil {
		name = split
	}
	return isLoopback(strings.Trim(name, "[]"))
}

// askToLogIn sends a browser to the login, and afterwards back to the page that it asked for.
func (c *Console) askToLogIn(w http.ResponseWriter, request *http.Request) {
	to := "/login"
	if request.Method == http.MethodGet && request.URL.Path != "/" {
		to += "?next=" + url.QueryEscape(request.URL.RequestURI())
	}
	if request.Header.Get("HX-Request") != "" {
		w.Header().Set("HX-Redirect", to)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(w, request, to, http.StatusSeeOther)
}

// ownPath gives the path of a page of the console, "" for everything else: nobody is sent to another site after the login.
func ownPath(text string) string {
	parsed, err := url.Parse(text)
	if err != nil || parsed.IsAbs() || parsed.Host != "" || !strings.HasPrefix(parsed.Path, "/") ||
		strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\\r\n\t") || parsed.Path == "/login" {
		return ""
	}
	return parsed.RequestURI()
}
