package mail

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Claimed is a message that was claimed for a next hop.
type Claimed struct {
	Lease, Item int64
	// Lane is KIND/CONNECTOR/NAME, as sql/mail/messages/recipients.sql says.
	Lane      string
	MessageID int64
	// NetworkMessageID is a UUID that stays with the message and its forks.
	NetworkMessageID string
	Sender           string
	// Return is FULL, HDRS or "", and EnvelopeID "" when the sender gave none.
	Return, EnvelopeID string
	// Size is that of the body in bytes.
	Size int64
	// Body is there, or has to be read with [ReadBody] from Content, of which BodyHolder is the holder.
	Body                []byte
	Content, BodyHolder int64
	IsEightBit          bool
	HasUTF8Addresses    bool
	// IsOriginating is whether it was submitted here by somebody of ours.
	IsOriginating bool
	ReceivedAt    time.Time
	// Ordinals, Addresses, Notify and Originals have an element for each recipient; the last two are "" where nothing was said.
	Ordinals                     []int32
	Addresses, Notify, Originals []string
	// ReturnPaths are those of the recipients where each has its own; nil where it is the sender.
	ReturnPaths []string
}

// Claim claims messages of at most hops next hops, at most each of one, until the lease is over or renewed. Lanes whose names begin with
// one of passedBy are left to others.
func Claim(
	ctx context.Context, db pgdb.DB, hops, each int, lease time.Duration, holder string, passedBy []string,
) ([]Claimed, error) {
	rows, err := db.Query(ctx, `
		select lease_id, item_id, lane, message_id, network_message_id::text, sender, coalesce(ret, ''), coalesce(envid, ''), size, body,
			coalesce(content_id, 0), body_holder, is_eight_bit, has_utf8_addresses, is_originating, received_at, ordinals, addresses,
			array(select coalesce(n, '') from unnest(notify) with ordinality as u (n, o) order by o),
			array(select coalesce(n, '') from unnest(original_recipients) with ordinality as u (n, o) order by o), return_paths
		from parley_mail._p_claim(
			hops => $1::integer, each => $2::integer, lease => $3::interval, holder => $4::text, passed_by => $5::text[]
		)
		order by lease_id, n`, hops, each, lease, holder, passedBy)
	if err != nil {
		return nil, pgdb.StatementError(err, "claim messages")
	}
	claimed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Claimed, err error) {
		err = row.Scan(&c.Lease, &c.Item, &c.Lane, &c.MessageID, &c.NetworkMessageID, &c.Sender, &c.Return, &c.EnvelopeID, &c.Size, &c.Body,
			&c.Content, &c.BodyHolder, &c.IsEightBit, &c.HasUTF8Addresses, &c.IsOriginating, &c.ReceivedAt, &c.Ordinals, &c.Addresses, &c.Notify,
			&c.Originals, &c.ReturnPaths)
		return c, err
	})
	if err != nil {
		return nil, pgdb.StatementError(err, "claim messages")
	}
	return claimed, nil
}

// Renew extends leases, and gives those that it has extended and those that are over or finished. Without waits one that another
// transaction has locked is in neither.
func Renew(
	ctx context.Context, db pgdb.DB, leases []int64, lease time.Duration, waits bool,
) (renewed, gone []int64, err error) {
	err = db.QueryRow(ctx, `
		select renewed, gone from parley_mail._p_renew(
			leases => $1::bigint[], lease => $2::interval, waits => $3::boolean
		)`, leases, lease, waits).
		Scan(&renewed, &gone)
	if err != nil {
		return nil, nil, pgdb.StatementError(err, "renew leases of messages")
	}
	return renewed, gone, nil
}

// Outcomes are the outcomes of recipients, an element of each column for each of them; Released are messages that were not tried.
type Outcomes struct {
	Leases, Items, Messages []int64
	Ordinals                []int32
	// Outcomes are DELIVERED, DUPLICATE, RELAYED, FAILED, DEFERRED, UNKNOWN or REROUTED.
	Outcomes []string
	// Codes are replies such as 250, or 0; Statuses are codes of RFC 3463.
	Codes                  []int32
	Statuses, Texts, Hosts []string
	// ServerIPs are addresses of hosts, or ""; ConnectMS and TransferMS are how long connecting and sending took, in milliseconds.
	ServerIPs             []string
	ConnectMS, TransferMS []int32
	// Addresses are those of the recipients: with them a delivery is recorded also when its lease is over.
	Addresses                     []string
	ReleasedLeases, ReleasedItems []int64
	// Lanes are those that the same transaction reports on after this: see Hops.
	Lanes []string
}

// RecordOutcomes records outcomes, and returns how many were refused because their lease is over.
func RecordOutcomes(ctx context.Context, db pgdb.DB, o Outcomes) (refused int, err error) {
	err = db.QueryRow(ctx, `select parley_mail._p_record_outcomes(
		leases => $1::bigint[], items => $2::bigint[], message_ids => $3::bigint[], ordinals => $4::integer[],
		outcomes => $5::text[], codes => $6::integer[], statuses => $7::text[], texts => $8::text[],
		hosts => $9::text[], released_leases => $10::bigint[], released_items => $11::bigint[],
		server_ips => array(select nullif(i, '') from unnest($12::text[]) with ordinality as u (i, n) order by n),
		connect_ms => $13::integer[], transfer_ms => $14::integer[], addresses => $15::text[], lanes => $16::text[]
	)`,
		o.Leases, o.Items, o.Messages, o.Ordinals, o.Outcomes, o.Codes, o.Statuses, o.Texts, o.Hosts, o.ReleasedLeases, o.ReleasedItems,
		o.ServerIPs, o.ConnectMS, o.TransferMS, o.Addresses, o.Lanes,
	).Scan(&refused)
	if err != nil {
		return 0, pgdb.StatementError(err, "record what became of messages")
	}
	return refused, nil
}

// Hops are reports of next hops, an element of each column for each: an error is "" for a hop that was reached.
type Hops struct {
	Lanes, Errors []string
	Began         []time.Time
}

// ReportHops reports whether next hops were reached.
func ReportHops(ctx context.Context, db pgdb.DB, h Hops) error {
	_, err := db.Exec(ctx, `select parley_mail._p_report_hops(
		lanes => $1::text[],
		errors => array(select nullif(e, '') from unnest($2::text[]) with ordinality as u (e, n) order by n),
		began => $3::timestamptz[]
	)`,
		h.Lanes, h.Errors, h.Began)
	if err != nil {
		return pgdb.StatementError(err, "report next hops")
	}
	return nil
}

// Piece is some of the chunks of a body.
type Piece struct {
	Chunks [][]byte
	// Of is how many chunks the body has, and Bytes how many bytes.
	Of    int
	Bytes int64
}

// ReadBody reads chunks of a body from first on, at most count. It fails with PS010 where the database has fewer of them than belong to
// the body, and with PS003 where the body is gone; first is one that the body has.
func ReadBody(ctx context.Context, db pgdb.DB, content, holder int64, first, count int) (piece Piece, err error) {
	rows, err := db.Query(ctx, `select body, chunks, bytes from parley_mail._p_read_body(
		content_id => $1::bigint, body_holder => $2::bigint, from_number => $3::integer, to_number => $4::integer
	)
		order by number`, content, holder, first, first+count-1)
	if err == nil {
		var chunk []byte
		_, err = pgx.ForEachRow(rows, []any{&chunk, &piece.Of, &piece.Bytes}, func() error {
			piece.Chunks, chunk = append(piece.Chunks, chunk), nil
			return nil
		})
	}
	if err != nil {
		return Piece{}, pgdb.StatementError(err, "read the body of a message")
	}
	return piece, nil
}

// UnneededBodies gives those of some messages that are there no more: nobody needs their bodies.
func UnneededBodies(ctx context.Context, db pgdb.DB, holders []int64) (unneeded []int64, err error) {
	if err = db.QueryRow(ctx, "select parley_mail._p_unneeded_bodies($1::bigint[])", holders).Scan(&unneeded); err != nil {
		return nil, pgdb.StatementError(err, "ask which bodies are needed")
	}
	return unneeded, nil
}

// Report is a delivery report that is to be made, with the message that it is about.
type Report struct {
	MessageID int64
	// Action is FAILED, DELAYED, DELIVERED, RELAYED or EXPANDED.
	Action string
	// IsWhole is whether the message is returned whole, and not its header alone.
	IsWhole               bool
	Sender, EnvelopeID    string
	ReceivedAt, ExpiresAt time.Time
	Helo                  string
	Body                  []byte
	Content, BodyHolder   int64
	NetworkMessageID      string
	// The rest has an element for each recipient.
	Addresses, Originals, Statuses, Texts, Hosts []string
	Codes                                        []int32
	AttemptedAt                                  []*time.Time
}

// DueReport takes a report that is to be made now; nil when there is none. It is made in the transaction that takes it, which
// [FinishReport] ends.
func DueReport(ctx context.Context, tx pgx.Tx) (*Report, error) {
	rows, err := tx.Query(ctx, `
		select message_id, action, sender, is_whole, coalesce(envid, ''), received_at, expires_at, coalesce(helo, ''), body,
			coalesce(content_id, 0), body_holder, network_message_id::text, addresses,
			array(select coalesce(v, '') from unnest(original_recipients) with ordinality as u (v, n) order by n),
			statuses, array(select coalesce(v, '') from unnest(reasons) with ordinality as u (v, n) order by n),
			array(select coalesce(v, '') from unnest(hosts) with ordinality as u (v, n) order by n),
			array(select coalesce(v, 0) from unnest(codes) with ordinality as u (v, n) order by n), attempted_at
		from parley_mail._p_due_report()`)
	if err != nil {
		return nil, pgdb.StatementError(err, "take a report")
	}
	reports, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Report, err error) {
		err = row.Scan(&r.MessageID, &r.Action, &r.Sender, &r.IsWhole, &r.EnvelopeID, &r.ReceivedAt, &r.ExpiresAt, &r.Helo, &r.Body,
			&r.Content, &r.BodyHolder, &r.NetworkMessageID, &r.Addresses, &r.Originals, &r.Statuses, &r.Texts, &r.Hosts, &r.Codes, &r.AttemptedAt)
		return r, err
	})
	if err != nil {
		return nil, pgdb.StatementError(err, "take a report")
	}
	if len(reports) == 0 {
		return nil, nil
	}
	return &reports[0], nil
}

// FinishReport removes the message that a report was about, when nothing else needs it.
func FinishReport(ctx context.Context, tx pgx.Tx, messageID int64) error {
	if _, err := tx.Exec(ctx, "select parley_mail._p_finish_report($1::bigint)", messageID); err != nil {
		return pgdb.StatementError(err, "finish a report")
	}
	return nil
}

// Maintain gives back the items of leases that are over, informs senders of delays, gives up messages that waited too long, and removes
// rows that are not needed any more. With resubmits, messages are categorized anew when that may help.
// It gives the errors of tasks that could not be done, by their names; they keep no other from being done.
func Maintain(ctx context.Context, db pgdb.DB, resubmits bool) (map[string]string, error) {
	rows, err := db.Query(ctx, "select task, error from parley_mail._p_maintain($1::boolean) where error is not null", resubmits)
	if err != nil {
		return nil, pgdb.StatementError(err, "maintain mail")
	}
	failed := map[string]string{}
	var task, text string
	if _, err := pgx.ForEachRow(rows, []any{&task, &text}, func() error {
		failed[task] = text
		return nil
	}); err != nil {
		return nil, pgdb.StatementError(err, "maintain mail")
	}
	return failed, nil
}
