package send

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/emersion/go-sasl"
)

// loginClient answers what it is asked with the name and then the password, however the host words its questions.
type loginClient struct{ answers []string }

var _ sasl.Client = (*loginClient)(nil)

// Start begins without an answer.
func (l *loginClient) Start() (mechanism string, first []byte, err error) { return "LOGIN", nil, nil }

// Next is the next answer.
func (l *loginClient) Next([]byte) ([]byte, error) {
	if len(l.answers) == 0 {
		return nil, errors.New("the host asks for more than a name and a password")
	}
	next := l.answers[0]
	l.answers = l.answers[1:]
	return []byte(next), nil
}

// maximumIterations bounds what a host may have us compute.
const maximumIterations = 1_000_000

// scramClient proves a password without sending it, and has the host prove that it knows it too (RFC 5802, RFC 7677).
type scramClient struct {
	user, password string
	nonce, first   string
	signature      []byte
	step           int
	isProved       bool // by the host, that it knows the password
}

var _ sasl.Client = (*scramClient)(nil)

// proving is a mechanism by which the host proves something, too. It has to before we believe that we are let in: whoever stands between us
// says so without.
type proving interface{ hasProof() bool }

func (s *scramClient) hasProof() bool { return s.isProved }

// errUnproved is why a host that lets us in is not believed.
var errUnproved = errors.New("the host does not prove that it knows the password")

func newScramClient(user, password string) sasl.Client {
	return &scramClient{user: user, password: password, nonce: rand.Text()}
}

// Start is the first message.
func (s *scramClient) Start() (mechanism string, first []byte, err error) {
	s.first = "n=" + strings.NewReplacer("=", "=3D", ",", "=2C").Replace(s.user) + ",r=" + s.nonce
	return "SCRAM-SHA-256", []byte("n,," + s.first), nil
}

// Next answers the challenge, and then checks what the host has proved.
func (s *scramClient) Next(challenge []byte) ([]byte, error) {
	s.step++
	switch s.step {
	case 1:
		return s.prove(string(challenge))
	case 2:
		proof, is := strings.CutPrefix(string(challenge), "v=")
		given, err := base64.StdEncoding.DecodeString(proof)
		if !is || err != nil || !hmac.Equal(given, s.signature) {
			return nil, errUnproved
		}
		s.isProved = true
		return []byte{}, nil
	default:
		return nil, errors.New("the host goes on where authentication is at its end")
	}
}

func (s *scramClient) prove(challenge string) ([]byte, error) {
	fields := make(map[string]string)
	for field := range strings.SplitSeq(challenge, ",") {
		name, value, _ := strings.Cut(field, "=")
		fields[name] = value
	}
	salt, err := base64.StdEncoding.DecodeString(fields["s"])
	if err != nil {
		return nil, fmt.Errorf("read the salt: %w", err)
	}
	iterations, err := strconv.Atoi(fields["i"])
	switch {
	case err != nil || iterations < 1 || iterations > maximumIterations:
		return nil, fmt.Errorf("the host asks for %q iterations", fields["i"])
	case !strings.HasPrefix(fields["r"], s.nonce) || len(fields["r"]) == len(s.nonce) || fields["m"] != "":
		return nil, errors.New("the challenge is not one of SCRAM")
	}
	salted, err := pbkdf2.Key(sha256.New, s.password, salt, iterations, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive the key: %w", err)
	}
	final := "c=biws,r=" + fields["r"]
	authenticated := s.first + "," + challenge + "," + final
	client := mac(salted, "Client Key")
	stored := sha256.Sum256(client)
	proof := mac(stored[:], authenticated)
	for i := range proof {
		proof[i] ^= client[i]
	}
	s.signature = mac(mac(salted, "Server Key"), authenticated)
	return []byte(final + ",p=" + base64.StdEncoding.EncodeToString(proof)), nil
}

func mac(key []byte, text string) []byte {
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(text))
	return sum.Sum(nil)
}
