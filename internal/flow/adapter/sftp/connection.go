package sftp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// hostKey is a key that a server may have: the key itself, or its fingerprint.
type hostKey struct {
	key         ssh.PublicKey
	fingerprint string
}

// readHostKey reads a fingerprint, a line of known_hosts, or such a line without its hosts: that the key is that of this server is said by
// the setting in which it stands.
func readHostKey(written string) (hostKey, error) {
	written = strings.TrimSpace(written)
	if strings.HasPrefix(written, "SHA256:") && len(written) == len("SHA256:")+43 {
		return hostKey{fingerprint: written}, nil
	}
	marker, _, key, _, rest, err := ssh.ParseKnownHosts([]byte(written))
	if err != nil {
		key, _, _, rest, err = ssh.ParseAuthorizedKey([]byte(written))
	}
	if err != nil || marker != "" || len(bytes.TrimSpace(rest)) > 0 {
		return hostKey{}, fmt.Errorf("%q is no key of a server", written)
	}
	return hostKey{key: key}, nil
}

// errHostKey is a server that is another one than it should be.
var errHostKey = errors.New("the server has another key than host_key says: somebody may stand between, or its key was changed")

// verify gives the check of the key of a server, and the algorithms of the keys that are known; nil for all.
func (s Server) verify() (ssh.HostKeyCallback, []string) {
	var known []hostKey
	var algorithms []string
	for _, written := range s.HostKey {
		k, err := readHostKey(written)
		if err != nil {
			continue // the definition was refused
		}
		known = append(known, k)
		switch {
		case k.key == nil: // only the server knows of which algorithm its key is
			algorithms = append(algorithms, ssh.SupportedAlgorithms().HostKeys...)
		case k.key.Type() == ssh.KeyAlgoRSA: // of which the signature with SHA-1 is not safe
			algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		default:
			algorithms = append(algorithms, k.key.Type())
		}
	}
	return func(_ string, _ net.Addr, key ssh.PublicKey) error {
		fingerprint := ssh.FingerprintSHA256(key)
		for _, k := range known {
			if k.key != nil && bytes.Equal(k.key.Marshal(), key.Marshal()) || k.key == nil && k.fingerprint == fingerprint {
				return nil
			}
		}
		return fmt.Errorf("%w; it shows %s %s", errHostKey, key.Type(), fingerprint)
	}, algorithms
}

// connection is a session with a server.
type connection struct {
	*sftp.Client
	ssh     *ssh.Client
	timeout time.Duration
	ended   chan struct{}
	end     sync.Once
}

// dial logs in.
func dial(ctx context.Context, e adapter.Endpoint, s Server, host string) (*connection, error) {
	timeout := time.Duration(s.Timeout)
	methods, err := authentication(ctx, e)
	if err != nil {
		return nil, err
	}
	raw, err := e.Permission.DialContext(ctx, "tcp", host, timeout)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	_ = raw.SetDeadline(time.Now().Add(timeout))
	callback, algorithms := s.verify()
	safe := ssh.SupportedAlgorithms()
	config := &ssh.ClientConfig{
		User: s.User, Auth: methods, HostKeyCallback: callback, HostKeyAlgorithms: algorithms, ClientVersion: "SSH-2.0-Parley",
		Config: ssh.Config{KeyExchanges: safe.KeyExchanges, Ciphers: safe.Ciphers, MACs: safe.MACs},
	}
	conn, channels, requests, err := ssh.NewClientConn(raw, host, config)
	if err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("log in at %s as %s: %w", host, s.User, err)
	}
	client := ssh.NewClient(conn, channels, requests)
	made, err := sftp.NewClient(client)
	if err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("begin SFTP at %s: %w", host, err)
	}
	_ = raw.SetDeadline(time.Time{}) // from here on each call has one
	c := &connection{Client: made, ssh: client, timeout: timeout, ended: make(chan struct{})}
	go func() {
		_ = client.Wait()
		c.close()
	}()
	return c, nil
}

// authentication gives the ways to log in that the secrets make.
func authentication(ctx context.Context, e adapter.Endpoint) ([]ssh.AuthMethod, error) {
	var methods []ssh.AuthMethod
	secret := func(name string) (string, bool, error) {
		value, found, err := e.Secret(ctx, name)
		if err == nil && found && value == "" {
			err = fmt.Errorf("the secret %s is empty", name)
		}
		return value, found, err
	}
	key, isKey, err := secret(keySecret)
	if err != nil {
		return nil, err
	}
	if isKey {
		passphrase, isEncrypted, err := secret(passphraseSecret)
		if err != nil {
			return nil, err
		}
		// Of some files of keys the end of the last line is a part.
		pem := []byte(strings.TrimRight(key, "\n") + "\n")
		var signer ssh.Signer
		if isEncrypted {
			signer, err = ssh.ParsePrivateKeyWithPassphrase(pem, []byte(passphrase))
		} else {
			signer, err = ssh.ParsePrivateKey(pem)
		}
		if err != nil {
			return nil, fmt.Errorf("read the secret %s: %w", keySecret, err)
		}
		methods = append(methods, ssh.PublicKeys(signer))
	}
	password, isPassword, err := secret(passwordSecret)
	if err != nil {
		return nil, err
	}
	if isPassword {
		methods = append(methods, ssh.Password(password), ssh.KeyboardInteractive(
			func(_, _ string, questions []string, echos []bool) ([]string, error) {
				if len(questions) > 1 || slices.Contains(echos, true) {
					return nil, errors.New("the server asks for more than the password")
				}
				return slices.Repeat([]string{password}, len(questions)), nil
			}))
	}
	return methods, nil
}

// close ends the session.
func (c *connection) close() {
	c.end.Do(func() {
		close(c.ended)
		_ = c.ssh.Close()
		_ = c.Close()
	})
}

// isEnded reports whether the session is over.
func (c *connection) isEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// errTimeout is a server that has not answered in time.
var errTimeout = errors.New("the server has not answered in time")

// call makes a call of the server. One that is not answered in time, or not before ctx ends, ends the session: what waits for an answer
// could not be broken off otherwise.
func (c *connection) call(ctx context.Context, do func() error) error {
	isLate := make(chan struct{})
	timer := time.AfterFunc(c.timeout, func() {
		close(isLate)
		c.close()
	})
	stop := context.AfterFunc(ctx, c.close)
	err := do()
	stop()
	if !timer.Stop() {
		<-isLate
		return errors.Join(errTimeout, err)
	}
	if err != nil && !isAnswer(err) { // nothing that is asked from now on is answered
		c.close()
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// isAnswer reports whether an error is one that the server has answered with, so that the session goes on.
func isAnswer(err error) bool {
	_, isStatus := errors.AsType[*sftp.StatusError](err)
	return isStatus || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrExist)
}
