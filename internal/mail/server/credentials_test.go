package server

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
)

// gate answers logins as PostgreSQL does: with the password "right", or, open, without asking.
type gate struct{ isOpen bool }

func (g gate) answer(conn net.Conn) error {
	backend := pgproto3.NewBackend(conn, conn)
	first, err := backend.ReceiveStartupMessage()
	if err != nil {
		return err
	}
	if _, isTLS := first.(*pgproto3.SSLRequest); isTLS {
		return errors.New("TLS was asked for")
	}
	if !g.isOpen {
		backend.Send(&pgproto3.AuthenticationCleartextPassword{})
		if err := backend.Flush(); err != nil {
			return err
		}
		if err := backend.SetAuthType(pgproto3.AuthTypeCleartextPassword); err != nil {
			return err
		}
		said, err := backend.Receive()
		if err != nil {
			return err
		}
		if password, is := said.(*pgproto3.PasswordMessage); !is || password.Password != "right" {
			backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: "password authentication failed"})
			return backend.Flush()
		}
	}
	backend.Send(&pgproto3.AuthenticationOk{})
	backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if err := backend.Flush(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn)
	return err
}

// credentials gives users who log in at the gate.
func (g gate) credentials(t *testing.T) credentials {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = conn.Close() }()
				if err := g.answer(conn); err != nil {
					t.Errorf("the gate: %v", err)
				}
			})
		}
	})
	pool, err := pgxpool.New(t.Context(), "postgres://daemon@"+listener.Addr().String()+"/shop?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close(); _ = listener.Close(); serving.Wait() })
	return credentials{pool: pool}
}

func TestRoleLogsInWithItsPassword(t *testing.T) {
	t.Parallel()
	asking := gate{}.credentials(t)
	for password, want := range map[string]bool{"right": true, "wrong": false} {
		if isIn, err := asking.login(t.Context(), "clerk", password); err != nil || isIn != want {
			t.Errorf("with the %s password: %v, %v", password, isIn, err)
		}
	}
	if isIn, err := (gate{isOpen: true}).credentials(t).login(t.Context(), "clerk", "wrong"); isIn || err == nil ||
		!strings.Contains(err.Error(), "pg_hba.conf") {
		t.Errorf("where no password is asked for: %v, %v", isIn, err)
	}
}
