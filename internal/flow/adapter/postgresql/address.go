package postgresql

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// local is the address of the database of the host.
const local = "local"

const connectTimeout = 10 * time.Second

// place is where rows are: in the database of the host, or in another one.
type place struct {
	isLocal        bool
	host, port     string
	user, database string
}

func (p place) hostPort() string { return net.JoinHostPort(p.host, p.port) }

// parseAddress reads local, or postgresql://user@host:port/database.
func parseAddress(address string) (place, error) {
	if address == local {
		return place{isLocal: true}, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgresql" && u.Scheme != "postgres" {
		return place{}, errors.New("the address is neither local nor postgresql://user@host:port/database")
	}
	p := place{host: u.Hostname(), port: u.Port(), user: u.User.Username(), database: strings.TrimPrefix(u.Path, "/")}
	if p.port == "" {
		p.port = "5432"
	}
	_, hasPassword := u.User.Password()
	switch {
	case hasPassword:
		return place{}, errors.New("the address has a password in it")
	case p.host == "" || strings.ContainsAny(p.host, ",/") || p.user == "" || p.database == "" || strings.Contains(p.database, "/"):
		return place{}, errors.New("the address needs one host, a user and a database")
	case u.RawQuery != "" || u.Fragment != "":
		return place{}, errors.New("the address has parameters, which are settings here")
	}
	return p, nil
}

// checkAddress gives the place of an address and what is wrong with it.
func checkAddress(address, mode string, has func(secret string) bool) (place, []adapter.Problem) {
	at, err := parseAddress(address)
	if err != nil {
		return at, []adapter.Problem{{
			Path: []string{"address"}, Message: err.Error(),
			Remedy: "Write local for the database of the host, or postgresql://user@host:port/database; the password is a secret.",
		}}
	}
	problems := adapter.OneOf("tls", mode, "verify-full", "require", "disable")
	if !at.isLocal && !has(secretPassword) {
		problems = append(problems, adapter.Problem{
			Path: []string{"secrets"}, Message: "the user has no password", Remedy: "Give the secret password.",
		})
	}
	return at, problems
}

// config gives how to connect to another database. Nothing of it comes from the environment or the files of the process: these are the
// operator's, and definitions are somebody else's.
func (p place) config(ctx context.Context, e adapter.Endpoint, mode string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig("host=localhost user=nobody password=none passfile=/dev/null sslmode=disable sslcertmode=disable " +
		"target_session_attrs=any")
	if err != nil {
		return nil, fmt.Errorf("make a configuration: %w", err)
	}
	config.Host, config.User, config.Database, config.Fallbacks = p.host, p.user, p.database, nil
	if _, err := fmt.Sscanf(p.port, "%d", &config.Port); err != nil {
		return nil, fmt.Errorf("the port %q is no number", p.port)
	}
	password, found, err := e.Secret(ctx, secretPassword)
	if err != nil || !found {
		return nil, errors.Join(errors.New("the secret password cannot be read"), err)
	}
	config.Password = strings.TrimRight(password, "\r\n")
	if config.TLSConfig, err = p.secure(ctx, e, mode); err != nil {
		return nil, err
	}
	config.RuntimeParams = map[string]string{"application_name": "parley flow " + e.Name}
	config.ConnectTimeout = connectTimeout
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	// The name itself is checked and dialled.
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		return e.Permission.DialContext(ctx, network, address, connectTimeout)
	}
	return config, nil
}

func (p place) secure(ctx context.Context, e adapter.Endpoint, mode string) (*tls.Config, error) {
	if mode == "disable" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: p.host, InsecureSkipVerify: mode == "require"} //nolint:gosec // as libpq
	authorities, found, err := e.Secret(ctx, secretAuthorities)
	if err != nil {
		return nil, fmt.Errorf("read the secret authorities: %w", err)
	}
	if found {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(authorities)) {
			return nil, errors.New("the secret authorities has no certificate in it")
		}
	}
	return config, nil
}
