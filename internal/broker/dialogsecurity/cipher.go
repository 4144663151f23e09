package dialogsecurity

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/parley-broker/parley"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// Each run has a key of its own, derived from the secret of the agreement, a salt that no other call of Seal has, and everything
// that the run states about itself. A changed word leads to another key, which opens nothing; and the number of a
// message, which is the nonce, never meets the same key with another body.
const (
	runLabel      = "parley dialog run 1"
	fragmentLabel = "parley dialog fragment 1"
	resultLabel   = "parley dialog result 1"
)

var errTampered = errors.New("the message was changed on its way")

// description collects what a key is derived from, each part with its length where that is not fixed.
type description struct{ bytes []byte }

func describe(label string, salt []byte, size int) description {
	d := description{bytes: make([]byte, 0, size)}
	d.text(label)
	d.bytes = append(d.bytes, salt...)
	return d
}

func (d *description) text(s string) {
	d.number(int64(len(s)))
	d.bytes = append(d.bytes, s...)
}

func (d *description) number(n int64) { d.bytes = binary.BigEndian.AppendUint64(d.bytes, uint64(n)) }

func (d *description) id(u parley.UUID) { d.bytes = append(d.bytes, u[:]...) }

func (d *description) flag(is bool) {
	b := byte(0)
	if is {
		b = 1
	}
	d.bytes = append(d.bytes, b)
}

// moment is exact to the microsecond, as the clock of the database.
func (d *description) moment(t time.Time) {
	d.flag(t.IsZero())
	if !t.IsZero() {
		d.number(t.UnixMicro())
	}
}

func (d *description) key(secret string) []byte {
	key, err := hkdf.Expand(sha256.New, []byte(secret), string(d.bytes), secretSize)
	if err != nil {
		panic("dialogsecurity: " + err.Error())
	}
	return key
}

// cipherOfRun derives what seals and opens the bodies of a run. Numbers are left to the nonces: a run may be cut.
func cipherOfRun(secret string, salt []byte, speaker transportstore.Speaker, run *transportstore.Run) cipher.AEAD {
	d := describe(runLabel, salt, 512)
	d.id(speaker.Instance)
	d.number(speaker.Epoch)
	d.id(run.ConversationID)
	d.flag(run.FromInitiator)
	d.text(run.MessageType)
	d.number(run.Size)
	d.text(run.FromService)
	d.text(run.ToService)
	d.text(run.Contract)
	d.id(run.ToBroker)
	d.number(int64(run.Priority))
	d.moment(run.EnqueuedAt)
	d.moment(run.EndsAt)
	d.text(run.TraceContext)
	d.flag(run.Probe != nil)
	if run.Probe != nil {
		d.number(run.Probe.Given)
		d.number(run.Probe.Expected)
	}
	return newGCM(d.key(secret))
}

func cipherOfFragment(secret string, salt []byte, f *transportstore.Fragment) cipher.AEAD {
	d := describe(fragmentLabel, salt, 256)
	d.id(f.Speaker.Instance)
	d.number(f.Speaker.Epoch)
	d.id(f.ConversationID)
	d.flag(f.FromInitiator)
	d.number(f.Sequence)
	d.number(f.Offset)
	d.number(f.Size)
	d.text(f.ToService)
	d.id(f.ToBroker)
	return newGCM(d.key(secret))
}

// nonceOf is the nonce of a message; that of a tag over a run without bodies stands apart.
func nonceOf(sequence int64, isTag bool) []byte {
	var nonce [gcmNonceSize]byte
	if isTag {
		nonce[0] = 1
	}
	binary.BigEndian.PutUint64(nonce[4:], uint64(sequence))
	return nonce[:]
}

// sealRun seals a run; digest is that of the body of a large message, nil for others.
func sealRun(a *agreement, salt []byte, speaker transportstore.Speaker, run transportstore.Run, digest []byte) transportstore.Run {
	run.IsEncrypted = true
	aead := cipherOfRun(a.secret, salt, speaker, &run)
	run.Security = append(append(make([]byte, 0, len(a.head)+saltSize+digestSize+gcmTagSize), a.head...), salt...)
	if len(run.Bodies) == 0 {
		run.Security = aead.Seal(run.Security, nonceOf(run.FirstSequence, true), digest, nil)
		return run
	}
	size := 0
	for _, body := range run.Bodies {
		size += len(body) + gcmTagSize
	}
	bodies, all := make([][]byte, len(run.Bodies)), make([]byte, 0, size)
	for i, body := range run.Bodies {
		start := len(all)
		all = aead.Seal(all, nonceOf(run.FirstSequence+int64(i), false), body, nil)
		bodies[i] = all[start:len(all):len(all)]
	}
	run.Bodies = bodies
	return run
}

// openRun is the reverse of sealRun.
func openRun(
	a *agreement, h header, speaker transportstore.Speaker, run transportstore.Run,
) (opened transportstore.Run, digest []byte, err error) {
	aead := cipherOfRun(a.secret, h.salt, speaker, &run)
	run.Security, run.IsEncrypted, run.Owner, run.SealedAt = nil, true, "", h.sealedAt()
	if len(run.Bodies) == 0 {
		digest, err = aead.Open(nil, nonceOf(run.FirstSequence, true), h.tag, nil)
		if err != nil || (run.Size > 0) != (len(digest) == digestSize) {
			return run, nil, errTampered
		}
		return run, digest, nil
	}
	if len(h.tag) > 0 || run.Size > 0 {
		return run, nil, errTampered
	}
	bodies := make([][]byte, len(run.Bodies))
	for i, body := range run.Bodies {
		body, err := aead.Open(nil, nonceOf(run.FirstSequence+int64(i), false), body, nil)
		if err != nil {
			return run, nil, errTampered
		}
		if len(body) > 0 {
			bodies[i] = body
		}
	}
	run.Bodies = bodies
	return run, nil, nil
}

// sign gives the proof that a result comes from where the run was opened.
func sign(a *agreement, salt []byte, run *transportstore.Run, result *transportstore.Result) []byte {
	d := describe(resultLabel, salt, 256)
	d.id(run.ConversationID)
	d.flag(run.FromInitiator)
	d.number(run.FirstSequence)
	d.text(string(result.Outcome))
	d.number(result.Next)
	d.number(int64(result.ErrorNumber))
	d.text(result.Description)
	d.id(result.Broker)
	d.number(result.Epoch)
	return d.key(a.secret)
}

func isSignedBy(a *agreement, salt []byte, run *transportstore.Run, result *transportstore.Result) bool {
	return hmac.Equal(result.Security, sign(a, salt, run, result))
}
