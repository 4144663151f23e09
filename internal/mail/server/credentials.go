package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/receive"
	"github.com/parley-broker/parley/internal/pgdb"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

// loginTimeout bounds a login to PostgreSQL in the name of a user.
const loginTimeout = 10 * time.Second

// credentials are the users of the configuration: those with a verifier, and those who stand for a role of PostgreSQL.
type credentials struct {
	pool *pgxpool.Pool
	of   func(user string) (credential, bool)
}

// credential is a user of the configuration.
func (s *Server) credential(user string) (credential, bool) {
	known, isKnown := s.settings.Load().credentials[user]
	return known, isKnown
}

// Verifier gives the data with which a user is verified. Of a role it is the password that PostgreSQL keeps, where the daemon may read
// that, and otherwise a login; the role has to hold SEND.
func (c credentials) Verifier(ctx context.Context, user string) (receive.Verifier, error) {
	known, isKnown := c.of(user)
	if !isKnown {
		return receive.Verifier{}, receive.ErrUnknownUser
	}
	written := known.Verifier
	if known.Role != "" {
		may, err := c.MaySubmit(ctx, user)
		if err != nil {
			return receive.Verifier{}, err
		}
		if !may {
			return receive.Verifier{}, receive.ErrUnknownUser
		}
		if written, err = mailstore.RolePassword(ctx, c.pool, known.Role); err != nil {
			return receive.Verifier{}, fmt.Errorf("ask for the password of role %s: %w", known.Role, err)
		}
		if !strings.HasPrefix(written, "SCRAM-SHA-256$") {
			return receive.Verifier{Login: func(ctx context.Context, password string) (bool, error) {
				return c.login(ctx, known.Role, password)
			}}, nil
		}
	}
	verifier, err := receive.ParseVerifier(written)
	if err != nil {
		return receive.Verifier{}, fmt.Errorf("read the verifier of %s: %w", user, err)
	}
	return verifier, nil
}

// MaySubmit reports whether a user is configured and, where he stands for a role, whether it holds SEND now.
func (c credentials) MaySubmit(ctx context.Context, user string) (bool, error) {
	known, isKnown := c.of(user)
	if !isKnown || known.Role == "" {
		return isKnown, nil
	}
	may, err := mailstore.MaySubmit(ctx, c.pool, known.Role)
	if err != nil {
		return false, fmt.Errorf("ask for the rights of role %s: %w", known.Role, err)
	}
	return may, nil
}

// login reports whether a role gets into the database with a password. A server that lets roles in without asking for one does not know: it
// is found out by a password that nobody has.
func (c credentials) login(ctx context.Context, role, password string) (bool, error) {
	isIn, err := c.tryLogin(ctx, role, message.Token())
	switch {
	case err != nil:
		return false, err
	case isIn:
		return false, fmt.Errorf("PostgreSQL does not ask role %q for its password: have pg_hba.conf ask those who come from here, "+
			"or let the role of the daemon read pg_authid", role)
	}
	return c.tryLogin(ctx, role, password)
}

func (c credentials) tryLogin(ctx context.Context, role, password string) (isIn bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	config := c.pool.Config().ConnConfig
	config.User, config.Password, config.RuntimeParams = role, password, map[string]string{"application_name": "parley mail login"}
	conn, err := pgx.ConnectConfig(ctx, config)
	if pgdb.SQLState(err) == "28P01" { // invalid_password
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("log in as role %s: %w", role, err)
	}
	_ = conn.Close(ctx)
	return true, nil
}
