package server_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/pickup"
	"github.com/parley-broker/parley/internal/mail/spool"
	"github.com/parley-broker/parley/parleytest"
)

// parameters are the parameters of an envelope that an export keeps.
type parameters struct {
	Sender, Return, EnvelopeID, BodyType string
	HasVERP, IsUTF8                      bool
	Recipients                           []message.Recipient
}

// replayed is the store of a folder: it keeps what was replayed, and ends the folder.
type replayed struct {
	parameters
	end func()
}

func (r *replayed) Accept(e message.Envelope, _ *spool.Body) (int64, error) {
	r.parameters = parameters{e.Sender, e.Return, e.EnvelopeID, string(e.BodyType), e.HasVERP, e.IsUTF8, e.Recipients}
	r.end()
	return 1, nil
}

// The file as which a message is exported brings it again with the same parameters, whatever these are.
func TestExportedMessageIsReplayedWithItsParameters(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	if _, err := pool.Exec(t.Context(), `select parley_mail.apply('{"organization": {"organization": {"default_domain": "example.org"}}}')`); err != nil {
		t.Fatal(err)
	}
	// Characters that have a meaning in a field or a code, and the first and the last character of which a code has as many digits.
	const special = `+=\{}xX20BC;" <>@~!`
	text := rapid.StringOfN(rapid.SampledFrom([]rune(special)), 1, 12, -1)
	unicode := rapid.StringOfN(rapid.SampledFrom([]rune(special+"\x01\x09\x10\x19\x7f\u0080\u00a0\u00ff\u0100\u0fff\u1000\ud7ff\ue000\uffff\U00010000\U000fffff\U00100000\U0010ffff")), 1, 12, -1)
	recipient := rapid.Custom(func(t *rapid.T) message.Recipient {
		original := rapid.OneOf(rapid.Just(""), rapid.Map(text, func(v string) string { return "rfc822;" + v }), rapid.Map(unicode, func(v string) string { return "utf-8;" + v }))
		return message.Recipient{
			Address: rapid.SampledFrom([]string{"b@example.com", `"b ;"@example.com`}).Draw(t, "address"), Original: original.Draw(t, "original"),
			Notify: rapid.SampledFrom([]string{"", "NEVER", "SUCCESS,DELAY"}).Draw(t, "notify"),
		}
	})
	path := t.TempDir()
	folder := &pickup.Folder{Path: path, Open: func() (*os.Root, error) { return os.OpenRoot(path) }, IsReplay: true, FQDN: "mx", Spool: spool.New(t.TempDir(), 1<<10, 1<<20), Log: slog.New(slog.DiscardHandler), PerMinute: 1 << 30}
	rapid.Check(t, func(rt *rapid.T) {
		want := parameters{
			Sender: "ann@example.org", Return: rapid.SampledFrom([]string{"", "FULL", "HDRS"}).Draw(rt, "return"),
			EnvelopeID: rapid.OneOf(rapid.Just(""), text).Draw(rt, "id"), BodyType: rapid.SampledFrom([]string{"", "8BITMIME"}).Draw(rt, "body"),
			HasVERP: rapid.Bool().Draw(rt, "VERP"), IsUTF8: rapid.Bool().Draw(rt, "UTF8"), Recipients: rapid.SliceOfN(recipient, 1, 3).Draw(rt, "recipients"),
		}
		var addresses, notify, originals []string
		for _, r := range want.Recipients {
			addresses, notify, originals = append(addresses, r.Address), append(notify, r.Notify), append(originals, r.Original)
		}
		var id int64
		if err := pool.QueryRow(t.Context(), `
			select parley_mail._p_accept(array[jsonb_build_object('source', 'SMTP', 'sender', $1::text, 'ret', nullif($2, ''), 'envid', nullif($3, ''),
				'is_eight_bit', $4 <> '', 'has_verp', $5::boolean, 'has_utf8_addresses', $6::boolean, 'recipients', $7::text[],
				'notify', (select jsonb_agg(nullif(n, '') order by o) from unnest($8::text[]) with ordinality as u (n, o)),
				'original_recipients', (select jsonb_agg(nullif(n, '') order by o) from unnest($9::text[]) with ordinality as u (n, o)))], array['x'::bytea])`,
			want.Sender, want.Return, want.EnvelopeID, want.BodyType, want.HasVERP, want.IsUTF8, addresses, notify, originals).Scan(&id); err != nil {
			rt.Fatal(err)
		}
		var file []byte
		if err := pool.QueryRow(t.Context(), "select parley_mail._p_envelope_fields($1::bigint, null)", id).Scan(&file); err != nil {
			rt.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder.Path, "a.eml"), append(file, "From: ann@example.org\r\n\r\nx\r\n"...), 0o600); err != nil {
			rt.Fatal(err)
		}
		ctx, end := context.WithTimeout(t.Context(), parleytest.Patience)
		defer end()
		store := &replayed{end: end}
		var wrong error
		folder.Accepter, folder.Bad = store, func(_ string, reason error) {
			wrong = reason
			end()
		}
		err := folder.Run(ctx)
		if err = errors.Join(err, wrong); err != nil || !reflect.DeepEqual(store.parameters, want) {
			rt.Fatalf("%s is replayed as %+v, want %+v: %v", file, store.parameters, want, err)
		}
	})
}
