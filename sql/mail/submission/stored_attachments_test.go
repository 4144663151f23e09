package submission_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

const (
	putAttachment = "select encode(parley_mail.put_attachment(convert_to(repeat($1, 100000), 'UTF8')), 'hex')"
	sendStored    = "select parley_mail.send('shop', array['x@example.com'], 'a', attachments => array[parley_mail.stored_attachment('a.pdf', decode($1, 'hex'))])"
)

// sentBytes is the content of the attachment of a message, as its reader finds it.
const sentBytes = `select convert_from(decode(substring(convert_from(parley_mail._p_body_of($1), 'UTF8') from 'a[.]pdf"[^\r]*\r\n\r\n([A-Za-z0-9+/=\r\n]*)\r\n--'), 'base64'), 'UTF8')`

func TestStoredAttachmentIsThatOfItsRoleAlone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	shop, other := b.Sender("shop"), b.Sender("other")
	hash := sqltest.Value[string](shop, putAttachment, "0123456789")
	sqltest.Equal(shop, hash, "select encode(sha256(convert_to(repeat('0123456789', 100000), 'UTF8')), 'hex')")
	sqltest.Equal(shop, hash, putAttachment, "0123456789")
	sqltest.Equal(shop, "1 1000000", "select count(*) || ' ' || sum(bytes) from parley_mail.stored_attachments")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley_store.contents")
	sqltest.Equal(other, 0, "select count(*)::int from parley_mail.stored_attachments")
	foreign := other.RefusesMail(10, sendStored, hash)
	absent := other.RefusesMail(10, sendStored, hash[:62]+"00")
	if foreign.Message != absent.Message {
		t.Errorf("another's attachment is refused by %q, none by %q", foreign.Message, absent.Message)
	}
	sqltest.Equal(other, false, "select parley_mail.remove_attachment(decode($1, 'hex'))", hash)
	sqltest.Equal(other, false, "select parley_mail.remove_attachment(null)")
	for arguments, detail := range map[string]string{
		"'a.pdf', null":                                                 "It has neither content nor the hash of a stored one.",
		"'a.pdf', '" + hash + "'":                                       "It is one in hexadecimal, as text.",
		"'a.pdf', decode('" + hash + "00', 'hex')":                      "It has 33 bytes, and a SHA-256 has 32.",
		"null, decode('" + hash + "', 'hex')":                           "Its file name is null; an empty one is none.",
		"'a.pdf', decode('" + hash + "', 'hex'), content_type => 'pdf'": `"pdf" is no type.`,
	} {
		refusal := shop.RefusesMail(10, "select parley_mail.send('shop', array['x@example.com'], 'a', attachments => array[parley_mail.stored_attachment("+arguments+")])")
		if refusal.Detail != detail {
			t.Errorf("stored_attachment(%s) is refused because %q, want %q", arguments, refusal.Detail, detail)
		}
	}
	if refusal := shop.RefusesMail(10, "select parley_mail.put_attachment(null)"); !strings.Contains(refusal.Hint, "empty file") || strings.Contains(refusal.Message, "attachment 1") {
		t.Errorf("no content is refused by %q", refusal.Message)
	}
	b.As(b.Role("nobody")).RefusesMail(1, putAttachment, "x")
	// Named or carried, it is the same to a key; and the message stays what it was.
	first := sqltest.Value[int64](shop, `select parley_mail.send('shop', array['x@example.com'], 'a', idempotency_key => 'k',
		attachments => array[parley_mail.stored_attachment('a.pdf', decode($1, 'hex'))])`, hash)
	sqltest.Equal(shop, true, "select parley_mail.remove_attachment(decode($1, 'hex'))", hash)
	sqltest.Equal(shop, first, `select parley_mail.send('shop', array['x@example.com'], 'a', idempotency_key => 'k',
		attachments => array[parley_mail.attachment('a.pdf', convert_to(repeat('0123456789', 100000), 'UTF8'))])`)
	shop.RefusesMail(10, sendStored, hash)
	sqltest.Equal(b.Session, true, "select ("+sentBytes+") = repeat('0123456789', 100000)", first)
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley_store.contents")
	// Small ones too, and for each recipient of many.
	shop.Exec("select parley_mail.put_attachment('small')")
	shop.Exec(`select parley_mail.send_batch('shop', array['x@example.com', 'y@example.com'], 'batch', attachments =>
		array[parley_mail.stored_attachment('a.pdf', sha256('small')), parley_mail.attachment('b', 'b')])`)
	sqltest.Equal(b.Session, "small small", `select string_agg((`+strings.ReplaceAll(sentBytes, "$1", "m.message_id")+`), ' ') from parley_mail._p_message as m where m.subject = 'batch'`)
}

func TestStoredAttachmentsHaveLimitsAndAnEnd(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	role := b.Role("shop")
	b.Exec("select parley_mail.grant_right('SEND', $1)", role)
	shop := b.As(role)
	for statement, number := range map[string]int{
		"select parley_mail.put_attachment(null)": 10, "select parley_mail.put_attachment('x', keep => null)": 10, "select parley_mail.put_attachment('x', keep => '367 days')": 10,
		"select parley_mail.put_attachment('x', keep => '-1 days')": 10, "select parley_mail.put_attachment(convert_to(repeat('x', 10485761), 'UTF8'))": 12,
	} {
		shop.RefusesMail(number, statement)
	}
	b.Exec("select parley_mail.set_quota($1, stored_bytes => 1502000)", role)
	hash := sqltest.Value[string](shop, putAttachment, "0123456789")
	shop.RefusesMail(13, putAttachment, "012345")
	shop.Exec(putAttachment, "0123")
	shop.Exec(putAttachment, "0123456789")
	// Many small ones have their weight: the rows themselves take space.
	shop.RefusesMail(13, "select parley_mail.put_attachment(convert_to('small ' || n, 'UTF8')) from generate_series(1, 200) as n")
	// A rollback leaves nothing.
	shop.Exec("select parley_mail.remove_attachment(a.sha256) from parley_mail.stored_attachments as a where a.bytes < 1000000")
	shop.Exec("begin")
	shop.Exec(putAttachment, "01234")
	shop.Rollback()
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley_store.contents")
	// An attachment that is asked for longer stays longer; nothing shortens it.
	shop.Exec("select parley_mail.put_attachment(convert_to(repeat('0123456789', 100000), 'UTF8'), keep => '1 minute')")
	sqltest.Equal(b.Session, 0, "select parley_mail._p_expire_attachments()")
	b.Exec("update parley_mail._p_attachment set expires_at = now() - interval '1 second'")
	shop.RefusesMail(10, sendStored, hash)
	shop.Exec(putAttachment, "0123456789")
	sqltest.Equal(b.Session, 0, "select parley_mail._p_expire_attachments()")
	shop.Exec(sendStored, hash)
	b.Exec("update parley_mail._p_attachment set expires_at = now() - interval '1 second'")
	sqltest.Equal(b.Session, 1, "select parley_mail._p_expire_attachments()")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley_store.contents")
	// The last session of a role that is gone does not hold up that what it left goes.
	shop.Exec(putAttachment, "01")
	b.Exec("update parley._p_role_number set role = 0 where name = $1", role)
	holder := b.Begin()
	holder.Exec("select from parley_mail._p_attachment_owner for update")
	sqltest.Equal(b.Session, 1, "select parley_mail._p_expire_attachments()")
	holder.Rollback()
	sqltest.Equal(b.Session, 0, "select parley_mail._p_expire_attachments()")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_mail._p_attachment_owner")
}

// Attachments that sessions of a role store at once count as if they had stored them one after the other.
func TestQuotaOfStoredBytesHoldsForSessionsAtOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	role := b.Role("shop")
	b.Exec("select parley_mail.grant_right('SEND', $1)", role)
	b.Exec("select parley_mail.set_quota($1, stored_bytes => 700000)", role)
	first, second, old := b.As(role), b.As(role), b.As(role)
	first.Exec("select parley_mail.put_attachment('x')")
	old.Exec("begin isolation level repeatable read")
	sqltest.Equal(old, 1, "select count(*)::int from parley_mail.stored_attachments")
	first.Exec("begin")
	first.Exec(putAttachment, "0123")
	ended := make(chan error, 1)
	go func() {
		_, err := second.DB.Exec(context.WithoutCancel(t.Context()), putAttachment, "4567")
		ended <- err
	}()
	waitForLock(b)
	first.Commit()
	if refusal, ok := errors.AsType[*pgconn.PgError](<-ended); !ok || refusal.Code != "PM013" {
		t.Errorf("the second got %v, want PM013", refusal)
	}
	// At an older snapshot the count would be too small.
	_, err := old.DB.Exec(t.Context(), putAttachment, "89ab")
	if refusal, ok := errors.AsType[*pgconn.PgError](err); !ok || refusal.Code != "40001" {
		t.Errorf("at an older snapshot it got %v, want 40001", err)
	}
	old.Rollback()
	sqltest.Equal(first, int64(400001), "select sum(bytes)::bigint from parley_mail.stored_attachments")
}

// Of two who store the same at once the second waits; what a submission takes stays until its end.
func TestStoredAttachmentInTwoSessions(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	role := b.Role("shop")
	b.Exec("select parley_mail.grant_right('SEND', $1)", role)
	beside := func(s sqltest.Session, statement string, arguments ...any) <-chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := s.DB.Exec(context.WithoutCancel(t.Context()), statement, arguments...)
			ended <- err
		}()
		waitForLock(b)
		return ended
	}
	var hash string
	for _, end := range []string{"rollback", "commit"} {
		first, second := b.As(role), b.As(role)
		first.Exec("begin")
		hash = sqltest.Value[string](first, putAttachment, end)
		ended := beside(second, putAttachment, end)
		first.Exec(end)
		if err := <-ended; err != nil {
			t.Errorf("after %s the second got %v", end, err)
		}
		sqltest.Equal(second, 1, "select count(*)::int from parley_mail.stored_attachments where sha256 = decode($1, 'hex')", hash)
	}
	sending, removing := b.As(role), b.As(role)
	sending.Exec("begin")
	sending.Exec(sendStored, hash)
	ended := beside(removing, "select parley_mail.remove_attachment(decode($1, 'hex'))", hash)
	sending.Exec(sendStored, hash)
	sending.Commit()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	b.RequireSubmitted(2)
	// A session that waits for a removal finds nothing.
	removing.Exec(putAttachment, "commit")
	removing.Exec("begin")
	removing.Exec("select parley_mail.remove_attachment(decode($1, 'hex'))", hash)
	ended = beside(sending, sendStored, hash)
	removing.Commit()
	if err := <-ended; err == nil {
		t.Error("a removed attachment was sent")
	}
	sqltest.Equal(b.Session, 3, "select count(*)::int from parley_store.contents")
}
