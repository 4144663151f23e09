package webhook

import (
	"net"
	"net/http"
	"time"

	"github.com/parley-broker/parley/internal/publicdial"
)

// newClient makes a client that follows no redirect: an address that was allowed must not lead to one that was not.
func newClient(isPublicOnly bool) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if isPublicOnly {
		dialer.Control = publicdial.RefusePrivate("name its host with --allow-webhook")
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			IdleConnTimeout:        30 * time.Second,
			MaxIdleConnsPerHost:    16,
			MaxResponseHeaderBytes: 64 << 10,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
