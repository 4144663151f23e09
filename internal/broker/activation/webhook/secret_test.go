package webhook_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/broker/activation/webhook"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/daemon"
)

const otherSecret = "whsec_YW5vdGhlciBrZXkgb2Ygc2l4dGVlbiBieXRlcw=="

// masterKey makes a file with a master key.
func (b *fixture) masterKey() (path string, keys *dialogsecurity.MasterKeys) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "master.key")
	b.require(dialogsecurity.CreateMasterKey(path))
	keys, err := dialogsecurity.OpenMasterKeys(path)
	b.require(err)
	return path, keys
}

// restart starts the daemon anew with a master key, or without any.
func (b *fixture) restart(keys *dialogsecurity.MasterKeys) {
	b.Helper()
	permission, err := webhook.ParsePermission([]string{b.server.URL})
	b.require(err)
	log := slog.New(slog.NewTextHandler(b.log, nil))
	b.starter = webhook.NewStarter(b.pool, 20, permission, dialogsecurity.WebhookSecrets{Keys: keys, SealsPlain: true, Logger: log}, log)
	b.Cleanup(b.starter.Close)
}

// dump gives the table of activations as a dump of the database has it.
func (b *fixture) dump() string {
	b.Helper()
	var text bytes.Buffer
	conn, err := b.pool.Acquire(b.Context())
	b.require(err)
	defer conn.Release()
	_, err = conn.Conn().PgConn().CopyTo(b.Context(), &text, "copy parley._p_external_activation to stdout")
	b.require(err)
	return text.String()
}

func (b *fixture) requireSealed(secret string) {
	b.Helper()
	dump := b.dump()
	if !strings.Contains(dump, "webhook") || strings.Contains(dump, secret) || strings.Contains(dump, hex.EncodeToString([]byte(secret))) {
		b.Errorf("the dump contains the secret: %s", dump)
	}
}

// requireSigned requires that the last request was signed with a secret.
func (b *fixture) requireSigned(secret string) {
	b.Helper()
	seen := b.seen()
	if len(seen) == 0 {
		b.Fatal("nothing was delivered")
	}
	last := seen[len(seen)-1]
	if !verify(secret, last.header, last.body, time.Now()) {
		b.Errorf("the request is not signed with %q: %v", secret, last.header)
	}
}

// requireOpens requires that a reader can be made, or cannot for a reason.
func (b *fixture) requireOpens(when string, reason error) {
	b.Helper()
	if _, err := b.newReader(1); !errors.Is(err, reason) {
		b.Errorf("%s: got %v, want %v", when, err, reason)
	}
}

func TestSecretIsSealedInTheDatabaseAndStillSigns(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", accept)
	if !strings.Contains(b.dump(), fixtureSecret) {
		t.Fatal("a secret that is stored plainly is not found in the dump")
	}
	_, keys := b.masterKey()
	b.restart(keys)
	b.require(b.starter.Keep(t.Context()))
	b.requireSealed(fixtureSecret)
	b.dialog("one")
	b.run(1)
	b.requireSigned(fixtureSecret)

	// Other alterations leave the secret as it is; a new one is sealed in its turn.
	b.exec("select parley.alter_webhook_activation('target', batch_size => 2)")
	b.requireSealed(fixtureSecret)
	b.exec("select parley.alter_webhook_activation('target', secret => '" + otherSecret + "')")
	b.require(b.starter.Keep(t.Context()))
	b.requireSealed(otherSecret)
	b.dialog("two")
	b.run(1)
	b.requireSigned(otherSecret)
}

func TestSecretOfAWebhookThatIsOffIsSealedToo(t *testing.T) {
	t.Parallel()
	b := newFixture(t, ", activation => false", accept)
	_, keys := b.masterKey()
	b.restart(keys)
	b.require(b.starter.Keep(t.Context()))
	b.requireSealed(fixtureSecret)
}

func TestDaemonWithoutAMasterKeyUsesSecretsAsTheyAre(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", accept)
	b.require(b.starter.Keep(t.Context()))
	b.dialog("one")
	b.run(1)
	b.requireSigned(fixtureSecret)
}

func TestSealedSecretOpensWithItsMasterKeyForItsQueueOnly(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", accept)
	_, keys := b.masterKey()
	b.restart(keys)
	b.require(b.starter.Keep(t.Context()))
	b.requireOpens("with its master key", nil)

	b.restart(nil)
	b.requireOpens("without a master key", dialogsecurity.ErrNoMasterKey)
	_, others := b.masterKey()
	b.restart(others)
	b.requireOpens("with another master key", dialogsecurity.ErrOtherMasterKey)
	b.restart(keys)
	sealed := value[[]byte](b, "select sealed_secret from parley._p_external_activation")
	if _, err := dialogsecurity.OpenWebhookSecret(keys, value[int32](b, "select queue_id from parley._p_queue where name = 'initiator'"), sealed); !errors.Is(err, dialogsecurity.ErrSpoiled) {
		t.Errorf("copied to another queue: %v", err)
	}
	b.exec("update parley._p_external_activation set sealed_secret = sealed_secret || '\\x00'::bytea")
	b.requireOpens("spoiled", dialogsecurity.ErrSpoiled)
}

func TestSecretsOfWebhooksFollowTheMasterKey(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", accept)
	path, keys := b.masterKey()
	b.restart(keys)
	b.require(b.starter.Keep(t.Context()))
	before := b.dump()
	b.require(dialogsecurity.AddMasterKey(path))
	current, err := dialogsecurity.OpenMasterKeys(path)
	b.require(err)
	changed, err := dialogsecurity.SealAnew(t.Context(), b.pool, current)
	if err != nil || changed != 1 || b.dump() == before {
		t.Errorf("%d secrets were sealed anew: %v", changed, err)
	}
	b.require(dialogsecurity.ForgetOldMasterKeys(path))
	b.dialog("one")
	b.run(1) // by the daemon that has run all the time
	b.requireSigned(fixtureSecret)
}

// A definition that is being altered waits for nobody, and its secret is not put back when it was sealed in between.
func TestSecretThatIsChangedMeanwhileIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", accept)
	_, keys := b.masterKey()
	b.restart(keys)
	tx, err := b.pool.Begin(t.Context())
	b.require(err)
	_, err = tx.Exec(t.Context(), "select parley.alter_webhook_activation('target', secret => '"+otherSecret+"')")
	b.require(err)
	// The daemon sees the old one still, and has other things to do than to wait.
	b.require(b.starter.Keep(t.Context()))
	b.require(tx.Commit(t.Context()))
	if !strings.Contains(b.dump(), otherSecret) {
		t.Error("the secret that was read before took the place of the new one")
	}
	b.require(b.starter.Keep(t.Context()))
	b.requireSealed(otherSecret)
	b.dialog("one")
	b.run(1)
	b.requireSigned(otherSecret)
}

func TestDaemonSealsASecretAsSoonAsItIsDefined(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", accept)
	_, keys := b.masterKey()
	b.restart(keys)
	log := slog.New(slog.NewTextHandler(b.log, nil))
	engine, err := activation.New(activation.Config{
		Pool: b.pool, Starters: map[string]activation.Starter{activation.KindWebhook: b.starter}, Logger: log,
	})
	b.require(err)
	leader, err := daemon.NewLeader(daemon.LeaderConfig{Pool: b.pool, Parts: []daemon.LedPart{engine}, Logger: log})
	b.require(err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- leader.Run(ctx) }()
	isSealed := func() bool {
		return !strings.Contains(b.dump(), fixtureSecret) && !strings.Contains(b.dump(), otherSecret)
	}
	b.waitUntil("what stands there is sealed", isSealed)
	b.exec("select parley.alter_webhook_activation('target', secret => '" + otherSecret + "')")
	b.waitUntil("what is new is sealed", isSealed)
	b.dialog("one")
	b.waitUntil("it is delivered", func() bool { return len(b.seen()) > 0 })
	b.requireSigned(otherSecret)
	stop()
	b.require(<-ended)
}
