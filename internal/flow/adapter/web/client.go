package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	secretAuthorities   = "authorities"
	answerHeaderBytes   = 64 << 10
	keepAlive           = 30 * time.Second
	expectedContinue    = time.Second
	handshakeTimeoutMax = 10 * time.Second
)

// errRedirect is the error of answers that lead to where the port may not send.
var errRedirect = errors.New("the address leads elsewhere")

// http gives the client of the port.
func (s *sender) http(ctx context.Context) (*http.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.settings.Authorities {
		authorities, err := s.secrets.get(ctx, secretAuthorities)
		if err != nil {
			return nil, err
		}
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM([]byte(authorities)) {
			return nil, errors.New("the secret authorities has no certificate in it")
		}
	}
	if s.settings.ClientCertificate {
		secure.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return s.clientCertificate(info.Context())
		}
	}
	s.client = &http.Client{
		CheckRedirect: s.checkRedirect,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return s.Permission.DialContext(ctx, network, address, time.Duration(s.settings.ConnectTimeout))
			},
			TLSClientConfig:        secure,
			TLSHandshakeTimeout:    handshakeTimeoutMax,
			IdleConnTimeout:        keepAlive,
			ExpectContinueTimeout:  expectedContinue,
			MaxIdleConnsPerHost:    s.settings.Connections,
			MaxResponseHeaderBytes: answerHeaderBytes,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
		},
	}
	return s.client, nil
}

// clientCertificate reads the certificate with which the port identifies itself: it may be renewed.
func (s *sender) clientCertificate(ctx context.Context) (*tls.Certificate, error) {
	certificate, err := s.secrets.get(ctx, secretCertificate)
	if err != nil {
		return nil, err
	}
	key, err := s.secrets.get(ctx, secretKeyOfTLS)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		return nil, fmt.Errorf("read the client certificate: %w", err)
	}
	return &pair, nil
}

// checkRedirect follows a redirect that keeps method and body, to where the port may send, as often as the settings say.
func (s *sender) checkRedirect(to *http.Request, via []*http.Request) error {
	from := via[len(via)-1]
	switch {
	case s.settings.Redirects == 0, to.Method != via[0].Method:
		// The answer itself is judged: a redirect that loses the body has not delivered it.
		return http.ErrUseLastResponse
	case len(via) > s.settings.Redirects:
		return fmt.Errorf("%w: more than %d times", errRedirect, s.settings.Redirects)
	case to.URL.Scheme != "http" && to.URL.Scheme != "https" || from.URL.Scheme == "https" && to.URL.Scheme == "http":
		return fmt.Errorf("%w, without https", errRedirect)
	case to.URL.User != nil:
		return fmt.Errorf("%w, with a user name", errRedirect)
	}
	// The client says from where it was led, with the query of our address, which may have a secret in it.
	to.Header.Del("Referer")
	if to.URL.Host != via[0].URL.Host {
		// Another host must not get our secrets.
		to.Header.Del(authorization)
		to.Header.Del(s.settings.BearerHeader)
		to.Header.Del(s.settings.HMAC.Header)
	}
	if _, err := s.Permission.CheckConnect(hostPort(to.URL)); err != nil {
		return fmt.Errorf("%w: %w", errRedirect, err)
	}
	return nil
}
