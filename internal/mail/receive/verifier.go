package receive

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/xdg-go/stringprep"
)

// Credentials gives the verifiers of users, who are rows or roles of PostgreSQL.
type Credentials interface {
	// Verifier gives the verifier of a user, or ErrUnknownUser.
	Verifier(ctx context.Context, user string) (Verifier, error)
	// MaySubmit reports whether somebody who has authenticated is still a user who may. It is asked for each message.
	MaySubmit(ctx context.Context, user string) (bool, error)
}

// ErrUnknownUser is returned by Credentials for somebody they do not know. Other errors are temporary.
var ErrUnknownUser = errors.New("no such user")

// Verifier is the data with which SCRAM-SHA-256 verifies a user, and proves to him that we are who he takes us for.
type Verifier struct {
	Iterations                 int
	Salt, StoredKey, ServerKey []byte
	// Login asks whether a password is right, where only somebody else knows; there are no keys then, and so no SCRAM.
	Login func(ctx context.Context, password string) (bool, error)
}

// iterationsMax bounds what one verification may cost.
const iterationsMax = 1_000_000

// ParseVerifier reads the form in which PostgreSQL keeps passwords: SCRAM-SHA-256$4096:salt$StoredKey:ServerKey.
func ParseVerifier(text string) (v Verifier, err error) {
	errForm := errors.New("no verifier of the form SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey")
	parts := strings.Split(text, "$")
	if len(parts) != 3 || parts[0] != "SCRAM-SHA-256" {
		return Verifier{}, errForm
	}
	iterations, salt, hasSalt := strings.Cut(parts[1], ":")
	stored, server, hasServer := strings.Cut(parts[2], ":")
	if !hasSalt || !hasServer {
		return Verifier{}, errForm
	}
	v.Iterations, err = strconv.Atoi(iterations)
	if err != nil || v.Iterations < 1 || v.Iterations > iterationsMax {
		return Verifier{}, fmt.Errorf("a verifier must have 1 to %d iterations", iterationsMax)
	}
	for _, field := range []struct {
		into *[]byte
		text string
	}{{&v.Salt, salt}, {&v.StoredKey, stored}, {&v.ServerKey, server}} {
		if *field.into, err = base64.StdEncoding.DecodeString(field.text); err != nil || len(*field.into) == 0 {
			return Verifier{}, errForm
		}
	}
	if len(v.StoredKey) != sha256.Size || len(v.ServerKey) != sha256.Size {
		return Verifier{}, errForm
	}
	return v, nil
}

// NewVerifier makes the verifier of a password.
func NewVerifier(password string, salt []byte, iterations int) (Verifier, error) {
	salted, err := pbkdf2.Key(sha256.New, prepared(password), salt, iterations, sha256.Size)
	if err != nil {
		return Verifier{}, fmt.Errorf("derive the key of a password: %w", err)
	}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	return Verifier{Iterations: iterations, Salt: salt, StoredKey: stored[:], ServerKey: mac(salted, "Server Key")}, nil
}

// prepared gives a password as SCRAM wants it. A password that cannot be prepared is taken as it is, as PostgreSQL does.
func prepared(password string) string {
	if text, err := stringprep.SASLprep.Prepare(password); err == nil {
		return text
	}
	return password
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// Matches reports whether a password is the one of the verifier.
func (v Verifier) Matches(password string) bool {
	other, err := NewVerifier(password, v.Salt, v.Iterations)
	return err == nil && subtle.ConstantTimeCompare(other.StoredKey, v.StoredKey) == 1
}

// unknownVerifier is one that no password matches. Its salt depends on the name alone, so that unknown users seem to be known.
func unknownVerifier(secret []byte, user string) Verifier {
	return Verifier{
		Iterations: 4096, Salt: mac(secret, "salt "+user)[:16],
		StoredKey: mac(secret, "stored "+user), ServerKey: mac(secret, "server "+user),
	}
}
