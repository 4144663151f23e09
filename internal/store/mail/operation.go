package mail

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Filter chooses messages that wait, or queues: an object of conditions, as parley_mail.find_messages and find_queues take it. The empty
// one is all of them.
type Filter map[string]any

// MarshalJSON writes an object, also for nil.
func (f Filter) MarshalJSON() ([]byte, error) {
	if f == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(map[string]any(f))
}

// Queue describes the messages that wait for one next hop.
type Queue struct {
	Queue       string     `json:"queue"`
	Status      string     `json:"status"`
	Messages    int64      `json:"messages"`
	Deferred    int64      `json:"deferred"`
	Bytes       int64      `json:"bytes"`
	OldestAt    *time.Time `json:"oldest_at"`
	NextRetryAt *time.Time `json:"next_retry_at"`
	LastError   *string    `json:"last_error"`
	SuspendedAs *string    `json:"suspended_for"`
	// Messages a second over the last minute; the velocity is negative when the queue grows. Nil for the submission queue.
	IncomingRate *float64 `json:"incoming_rate"`
	OutgoingRate *float64 `json:"outgoing_rate"`
	Velocity     *float64 `json:"velocity"`
}

// FindQueues gives the queues that a filter matches, by a column that may have :desc behind it; without one, those in which most waits
// first.
func FindQueues(ctx context.Context, db pgdb.DB, filter Filter, sort string) ([]Queue, error) {
	return rows[Queue](ctx, db, "read the queues of mail", `
		select queue, status, messages, deferred, bytes, oldest_at, next_retry_at, last_error, suspended_for as suspended_as,
			incoming_rate::float8, outgoing_rate::float8, velocity::float8
		from parley_mail.find_queues(filter => $1::jsonb, top => 2147483647, sort => $2::text)`,
		document{filter}, cmp.Or(sort, "messages:desc"))
}

// WaitingMessage is a message in a queue.
type WaitingMessage struct {
	MessageID        int64      `json:"message_id"`
	Queue            string     `json:"queue"`
	Status           string     `json:"status"`
	Sender           string     `json:"sender"`
	Recipients       []string   `json:"recipients"`
	RecipientCount   int        `json:"recipient_count"`
	Subject          *string    `json:"subject"`
	Size             int64      `json:"size"`
	Priority         string     `json:"priority"`
	Source           string     `json:"source"`
	Tag              *string    `json:"tag"`
	Attempts         int        `json:"attempts"`
	NextAttemptAt    *time.Time `json:"next_attempt_at"`
	LastError        *string    `json:"last_error"`
	Reason           *string    `json:"reason"`
	ReceivedAt       time.Time  `json:"received_at"`
	ExpiresAt        time.Time  `json:"expires_at"`
	NetworkMessageID string     `json:"network_message_id"`
	HeaderMessageID  *string    `json:"header_message_id"`
	ParentMessageID  *int64     `json:"parent_message_id"`
	SubmittedBy      *string    `json:"submitted_by"`
	Bookmark         string     `json:"bookmark"`
}

// Page is a part of a list: at most Top rows, those behind a bookmark, or the first by a column that may have :desc behind it.
type Page struct {
	Top         int
	After, Sort string
}

// FindMessages gives a page of messages that wait.
func FindMessages(ctx context.Context, db pgdb.DB, filter Filter, page Page) ([]WaitingMessage, error) {
	return rows[WaitingMessage](ctx, db, "find messages", `
		select message_id, queue, status, sender, recipients, recipient_count, subject, size, priority, source, tag, attempts, next_attempt_at,
			last_error, reason, received_at, expires_at, network_message_id::text, header_message_id, parent_message_id, submitted_by, bookmark
		from parley_mail.find_messages(
			filter => $1::jsonb, top => $2::integer, after => nullif($3::text, ''), sort => nullif($4::text, '')
		)`,
		document{filter}, page.Top, page.After, page.Sort)
}

// Step says how much of an operation is done in one transaction: at most Top messages; or nothing, when it only counts.
type Step struct {
	Top    int
	DryRun bool
}

// SuspendMessages holds messages, and gives how many.
func SuspendMessages(ctx context.Context, db pgdb.DB, filter Filter, step Step, reason string) (int, error) {
	return value[int](ctx, db, "suspend messages", `
		select parley_mail.suspend_messages(
			filter => $1::jsonb, reason => nullif($4::text, ''), top => $2::integer, dry_run => $3::boolean
		)`, document{filter}, step.Top, step.DryRun, reason)
}

// ResumeMessages has suspended messages go on.
func ResumeMessages(ctx context.Context, db pgdb.DB, filter Filter, step Step) (int, error) {
	return value[int](ctx, db, "resume messages", `
		select parley_mail.resume_messages(
			filter => $1::jsonb, top => $2::integer, dry_run => $3::boolean
		)`, document{filter}, step.Top, step.DryRun)
}

// RetryQueues has the next hops of queues in RETRY tried at once in which chosen messages wait, and gives how many queues.
func RetryQueues(ctx context.Context, db pgdb.DB, filter Filter, dryRun bool) (int, error) {
	return value[int](ctx, db, "retry queues", `
		select parley_mail.retry_queues(filter => $1::jsonb, dry_run => $2::boolean)`, document{filter}, dryRun)
}

// RetryMessages has messages that wait for their next attempt tried now; a queue in RETRY goes on waiting, see [RetryQueues].
func RetryMessages(ctx context.Context, db pgdb.DB, filter Filter, step Step) (int, error) {
	return value[int](ctx, db, "retry messages", `
		select parley_mail.retry_messages(
			filter => $1::jsonb, top => $2::integer, dry_run => $3::boolean, queues => false
		)`, document{filter}, step.Top, step.DryRun)
}

// ResubmitMessages has messages categorized anew.
func ResubmitMessages(ctx context.Context, db pgdb.DB, filter Filter, step Step) (int, error) {
	return value[int](ctx, db, "resubmit messages", `
		select parley_mail.resubmit_messages(
			filter => $1::jsonb, top => $2::integer, dry_run => $3::boolean
		)`, document{filter}, step.Top, step.DryRun)
}

// RemoveMessages gives messages up, with a report to their senders or without.
func RemoveMessages(ctx context.Context, db pgdb.DB, filter Filter, step Step, withReport bool) (int, error) {
	return value[int](ctx, db, "remove messages", `
		select parley_mail.remove_messages(
			filter => $1::jsonb, with_report => $4::boolean, top => $2::integer, dry_run => $3::boolean
		)`, document{filter}, step.Top, step.DryRun, withReport)
}

// RequireChangeable says, by an error, why an operation did nothing to messages that a filter names by number; nil where it names none.
func RequireChangeable(ctx context.Context, db pgdb.DB, operation string, filter Filter) error {
	return run(ctx, db, operation+" messages", `
		select parley_mail._p_require_changeable(operation => $1::text, filter => $2::jsonb)`, operation, document{filter})
}

// Withdraw gives up a message that this role has submitted for later, and gives how many messages that were.
func Withdraw(ctx context.Context, db pgdb.DB, id int64) (n int, err error) {
	return value[int](ctx, db, "withdraw a message", "select parley_mail.withdraw(message_id => $1::bigint)", id)
}

// MessageChange lists the changes to messages; empty fields stay.
type MessageChange struct {
	Priority    string
	Expires     *time.Time
	NextAttempt *time.Time
}

// ChangeMessages changes messages that wait.
func ChangeMessages(ctx context.Context, db pgdb.DB, filter Filter, step Step, change MessageChange) (int, error) {
	return value[int](ctx, db, "change messages", `
		select parley_mail.change_messages(
			filter => $1::jsonb, priority => nullif($4::text, ''), expires => $5::timestamptz,
			next_attempt => $6::timestamptz, top => $2::integer, dry_run => $3::boolean
		)`,
		document{filter}, step.Top, step.DryRun, change.Priority, change.Expires, change.NextAttempt)
}

// ChangeQueue suspends, resumes or retries a queue, and reports whether there was something to do.
func ChangeQueue(ctx context.Context, db pgdb.DB, operation, queue, reason string) (isDone bool, err error) {
	what := operation + " a queue"
	switch operation {
	case "suspend":
		return value[bool](ctx, db, what, "select parley_mail.suspend_queue(queue => $1::text, reason => nullif($2::text, ''))", queue, reason)
	case "resume":
		return value[bool](ctx, db, what, "select parley_mail.resume_queue(queue => $1::text)", queue)
	default:
		return value[bool](ctx, db, what, "select parley_mail.retry_queue(queue => $1::text)", queue)
	}
}

// HoldDomain has nothing leave for a domain; false when it was held.
func HoldDomain(ctx context.Context, db pgdb.DB, domain, reason string) (isDone bool, err error) {
	return value[bool](ctx, db, "hold a domain", `
		select parley_mail.hold_domain(domain => $1::text, reason => nullif($2::text, ''))`, domain, reason)
}

// ReleaseDomain has mail for a domain leave again; false when it was not held.
func ReleaseDomain(ctx context.Context, db pgdb.DB, domain string) (isDone bool, err error) {
	return value[bool](ctx, db, "release a domain", "select parley_mail.release_domain(domain => $1::text)", domain)
}

// Exported is a message as a file of the replay folder.
type Exported struct {
	MessageID int64
	Queue     string
	FileName  string
	Content   []byte
	Bookmark  int64
}

// Errors of ExportMessages that are about one message: it is not there, or not suspended.
const (
	CodeAbsent       = "PM006"
	CodeNotSuspended = "PM015"
)

// ExportMessages gives suspended messages, at most so many, behind a bookmark.
func ExportMessages(ctx context.Context, db pgdb.DB, filter Filter, top int, after int64) ([]Exported, error) {
	return rows[Exported](ctx, db, "export messages", `
		select message_id, queue, file_name, content, bookmark from parley_mail.export_messages(
			filter => $1::jsonb, top => $2::integer, after => $3::bigint
		)`,
		document{filter}, top, after)
}

// ReadMessage gives a part of a message: HEADER or ALL, at most so many bytes.
func ReadMessage(ctx context.Context, db pgdb.DB, id int64, part string, bytes int) (content []byte, err error) {
	return value[[]byte](ctx, db, "read a message", `
		select parley_mail.read_message(
			message_id => $1::bigint, part => $2::text, from_byte => 0, bytes => $3::integer
		)`, id, part, bytes)
}

// AddressTest lists the recipients of a message to an address, and by which way they get it.
type AddressTest struct {
	Recipient         string  `json:"recipient"`
	ByWayOf           *string `json:"by_way_of"`
	OriginalRecipient *string `json:"original_recipient"`
	Queue             *string `json:"queue"`
	DeliveryType      *string `json:"delivery_type"`
	Connector         *string `json:"connector"`
	NextHop           *string `json:"next_hop"`
	QueueStatus       *string `json:"queue_status"`
	IsHeld            bool    `json:"is_held"`
	Status            *string `json:"status"`
	Reason            *string `json:"reason"`
	// GoesTo is the way in words.
	GoesTo          *string `json:"goes_to"`
	NextHopIsDomain bool    `json:"next_hop_is_domain"`
}

// TestAddress describes the fate of a message, and sends none. A nil sender is the postmaster.
func TestAddress(ctx context.Context, db pgdb.DB, address string, sender *string, size int64) ([]AddressTest, error) {
	return rows[AddressTest](ctx, db, "test an address", `
		select recipient, by_way_of, original_recipient, queue, delivery_type, connector, next_hop, queue_status, is_held, status, reason,
			goes_to, next_hop_is_domain
		from parley_mail.test_address(address => $1::text, sender => $2::text, size => $3::bigint)`, address, sender, size)
}
