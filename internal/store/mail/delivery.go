package mail

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Claimed is a message that was claimed for a next hop.
type Claimed struct {
	Lease int64 `db:"lease_id"`
	Item  int64 `db:"item_id"`
	// Lane is KIND/CONNECTOR/NAME, as sql/mail/messages/recipients.sql says.
	Lane      string
	MessageID int64
	// NetworkMessageID is a UUID that stays with the message and its forks.
	NetworkMessageID string
	Sender           string
	// Return is FULL, HDRS or "", and EnvelopeID "" when the sender gave none.
	Return     string `db:"ret"`
	EnvelopeID string `db:"envid"`
	// Size is that of the body in bytes.
	Size int64
	// Body is there, or has to be read with [ReadBody] from Content, of which BodyHolder is the holder.
	Body             []byte
	Content          int64 `db:"content_id"`
	BodyHolder       int64
	IsEightBit       bool
	HasUTF8Addresses bool
	// IsOriginating is whether it was submitted here by somebody of ours.
	IsOriginating bool
	ReceivedAt    time.Time
	// Ordinals, Addresses, Notify and Originals have an element for each recipient; the last two are "" where nothing was said.
	Ordinals          []int32
	Addresses, Notify []string
	Originals         []string `db:"original_recipients"`
	// ReturnPaths are those of the recipients where each has its own; nil where it is the sender.
	ReturnPaths []string
}

// Claim claims messages of at most hops next hops, at most each of one, until the lease is over or renewed. Lanes whose names begin with
// one of passedBy are left to others.
func Claim(
	ctx context.Context, db pgdb.DB, hops, each int, lease time.Duration, holder string, passedBy []string,
) ([]Claimed, error) {
	return rows[Claimed](ctx, db, "claim messages", `
		select lease_id, item_id, lane, message_id, network_message_id::text, sender, coalesce(ret, '') as ret, coalesce(envid, '') as envid,
			size, body, coalesce(content_id, 0) as content_id, body_holder, is_eight_bit, has_utf8_addresses, is_originating, received_at,
			ordinals, addresses, array(select coalesce(n, '') from unnest(notify) with ordinality as u (n, o) order by o) as notify,
			array(
				select coalesce(n, '') from unnest(original_recipients) with ordinality as u (n, o) order by o
			) as original_recipients,
			return_paths
		from parley_mail._p_claim(
			hops => $1::integer, each => $2::integer, lease => $3::interval, holder => $4::text, passed_by => $5::text[]
		)
		order by lease_id, n`, hops, each, lease, holder, passedBy)
}

// Renew extends leases, and gives those that it has extended and those that are over or finished. Without waits one that another
// transaction has locked is in neither.
func Renew(
	ctx context.Context, db pgdb.DB, leases []int64, lease time.Duration, waits bool,
) (renewed, gone []int64, err error) {
	of, err := row[struct{ Renewed, Gone []int64 }](ctx, db, "renew leases of messages", `
		select renewed, gone from parley_mail._p_renew(
			leases => $1::bigint[], lease => $2::interval, waits => $3::boolean
		)`, leases, lease, waits)
	return of.Renewed, of.Gone, err
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
	return value[int](ctx, db, "record what became of messages", `
		select parley_mail._p_record_outcomes(
			leases => $1::bigint[], items => $2::bigint[], message_ids => $3::bigint[], ordinals => $4::integer[],
			outcomes => $5::text[], codes => $6::integer[], statuses => $7::text[], texts => $8::text[],
			hosts => $9::text[], released_leases => $10::bigint[], released_items => $11::bigint[],
			server_ips => array(select nullif(i, '') from unnest($12::text[]) with ordinality as u (i, n) order by n),
			connect_ms => $13::integer[], transfer_ms => $14::integer[], addresses => $15::text[], lanes => $16::text[]
		)`,
		o.Leases, o.Items, o.Messages, o.Ordinals, o.Outcomes, o.Codes, o.Statuses, o.Texts, o.Hosts, o.ReleasedLeases, o.ReleasedItems,
		o.ServerIPs, o.ConnectMS, o.TransferMS, o.Addresses, o.Lanes)
}

// Hops are reports of next hops, an element of each column for each: an error is "" for a hop that was reached.
type Hops struct {
	Lanes, Errors []string
	Began         []time.Time
}

// ReportHops reports whether next hops were reached.
func ReportHops(ctx context.Context, db pgdb.DB, h Hops) error {
	return run(ctx, db, "report next hops", `
		select parley_mail._p_report_hops(
			lanes => $1::text[],
			errors => array(select nullif(e, '') from unnest($2::text[]) with ordinality as u (e, n) order by n),
			began => $3::timestamptz[]
		)`, h.Lanes, h.Errors, h.Began)
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
	type chunk struct {
		Body   []byte
		Chunks int
		Bytes  int64
	}
	read, err := rows[chunk](ctx, db, "read the body of a message", `
		select body, chunks, bytes from parley_mail._p_read_body(
			content_id => $1::bigint, body_holder => $2::bigint, from_number => $3::integer, to_number => $4::integer
		)
		order by number`, content, holder, first, first+count-1)
	for _, c := range read {
		piece.Chunks, piece.Of, piece.Bytes = append(piece.Chunks, c.Body), c.Chunks, c.Bytes
	}
	return piece, err
}

// UnneededBodies gives those of some messages that are there no more: nobody needs their bodies.
func UnneededBodies(ctx context.Context, db pgdb.DB, holders []int64) (unneeded []int64, err error) {
	return value[[]int64](ctx, db, "ask which bodies are needed", `
		select parley_mail._p_unneeded_bodies(body_holders => $1::bigint[])`, holders)
}

// Report is a delivery report that is to be made, with the message that it is about.
type Report struct {
	MessageID int64
	// Action is FAILED, DELAYED, DELIVERED, RELAYED or EXPANDED.
	Action string
	// IsWhole is whether the message is returned whole, and not its header alone.
	IsWhole               bool
	Sender                string
	EnvelopeID            string `db:"envid"`
	ReceivedAt, ExpiresAt time.Time
	Helo                  string
	Body                  []byte
	Content               int64 `db:"content_id"`
	BodyHolder            int64
	NetworkMessageID      string
	// The rest has an element for each recipient.
	Addresses       []string
	Originals       []string `db:"original_recipients"`
	Statuses, Hosts []string
	Texts           []string `db:"reasons"`
	Codes           []int32
	AttemptedAt     []*time.Time
}

// DueReport takes a report that is to be made now; nil when there is none. It is made in the transaction that takes it, which
// [FinishReport] ends.
func DueReport(ctx context.Context, tx pgx.Tx) (*Report, error) {
	reports, err := rows[Report](ctx, tx, "take a report", `
		select message_id, action, sender, is_whole, coalesce(envid, '') as envid, received_at, expires_at, coalesce(helo, '') as helo, body,
			coalesce(content_id, 0) as content_id, body_holder, network_message_id::text, addresses,
			array(
				select coalesce(v, '') from unnest(original_recipients) with ordinality as u (v, n) order by n
			) as original_recipients,
			statuses, array(select coalesce(v, '') from unnest(reasons) with ordinality as u (v, n) order by n) as reasons,
			array(select coalesce(v, '') from unnest(hosts) with ordinality as u (v, n) order by n) as hosts,
			array(select coalesce(v, 0) from unnest(codes) with ordinality as u (v, n) order by n) as codes, attempted_at
		from parley_mail._p_due_report()`)
	if err != nil || len(reports) == 0 {
		return nil, err
	}
	return &reports[0], nil
}

// FinishReport removes the message that a report was about, when nothing else needs it.
func FinishReport(ctx context.Context, tx pgx.Tx, messageID int64) error {
	return run(ctx, tx, "finish a report", "select parley_mail._p_finish_report(message_id => $1::bigint)", messageID)
}

// Maintain gives back the items of leases that are over, informs senders of delays, gives up messages that waited too long, and removes
// rows that are not needed any more. With resubmits, messages are categorized anew when that may help.
// It gives the errors of tasks that could not be done, by their names; they keep no other from being done.
func Maintain(ctx context.Context, db pgdb.DB, resubmits bool) (map[string]string, error) {
	tasks, err := rows[struct{ Task, Error string }](ctx, db, "maintain mail", `
		select task, error from parley_mail._p_maintain(resubmits => $1::boolean) where error is not null`, resubmits)
	if err != nil {
		return nil, err
	}
	failed := make(map[string]string, len(tasks))
	for _, task := range tasks {
		failed[task.Task] = task.Error
	}
	return failed, nil
}
