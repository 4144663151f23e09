package sql_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	putAttachment = "select encode(parley_mail.put_attachment(convert_to(repeat($1, 100000), 'UTF8')), 'hex')"
	sendStored    = "select parley_mail.send('shop', array['x@example.com'], 'a', attachments => array[parley_mail.stored_attachment('a.pdf', decode($1, 'hex'))])"
)

// sentBytes is the content of the attachment of a message, as its reader finds it.
const sentBytes = `select convert_from(decode(substring(convert_from(parley_mail._p_body_of($1), 'UTF8') from 'a[.]pdf"[^\r]*\r\n\r\n([A-Za-z0-9+/=\r\n]*)\r\n--'), 'base64'), 'UTF8')`

func TestStoredAttachmentIsThatOfItsRoleAlone(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	shop, other := b.sender("shop"), b.sender("other")
	hash := value[string](shop, putAttachment, "0123456789")
	equal(shop, hash, "select encode(sha256(convert_to(repeat('0123456789', 100000), 'UTF8')), 'hex')")
	equal(shop, hash, putAttachment, "0123456789")
	equal(shop, "1 1000000", "select count(*) || ' ' || sum(bytes) from parley_mail.stored_attachments")
	equal(b.session, 1, "select count(*)::int from parley_store.contents")
	equal(other, 0, "select count(*)::int from parley_mail.stored_attachments")
	foreign := other.refusesMail(10, sendStored, hash)
	absent := other.refusesMail(10, sendStored, hash[:62]+"00")
	if foreign.Message != absent.Message {
		t.Errorf("another's attachment is refused by %q, none by %q", foreign.Message, absent.Message)
	}
	equal(other, false, "select parley_mail.remove_attachment(decode($1, 'hex'))", hash)
	equal(other, false, "select parley_mail.remove_attachment(null)")
	for arguments, detail := range map[string]string{
		"'a.pdf', null":                                                 "It has neither content nor the hash of a stored one.",
		"'a.pdf', '" + hash + "'":                                       "It is one in hexadecimal, as text.",
		"'a.pdf', decode('" + hash + "00', 'hex')":                      "It has 33 bytes, and a SHA-256 has 32.",
		"null, decode('" + hash + "', 'hex')":                           "Its file name is null; an empty one is none.",
		"'a.pdf', decode('" + hash + "', 'hex'), content_type => 'pdf'": `"pdf" is no type.`,
	} {
		refusal := shop.refusesMail(10, "select parley_mail.send('shop', array['x@example.com'], 'a', attachments => array[parley_mail.stored_attachment("+arguments+")])")
		if refusal.Detail != detail {
			t.Errorf("stored_attachment(%s) is refused because %q, want %q", arguments, refusal.Detail, detail)
		}
	}
	if refusal := shop.refusesMail(10, "select parley_mail.put_attachment(null)"); !strings.Contains(refusal.Hint, "empty file") || strings.Contains(refusal.Message, "attachment 1") {
		t.Errorf("no content is refused by %q", refusal.Message)
	}
	b.as(b.role("nobody")).refusesMail(1, putAttachment, "x")
	// Named or carried, it is the same to a key; and the message stays what it was.
	first := value[int64](shop, `select parley_mail.send('shop', array['x@example.com'], 'a', idempotency_key => 'k',
		attachments => array[parley_mail.stored_attachment('a.pdf', decode($1, 'hex'))])`, hash)
	equal(shop, true, "select parley_mail.remove_attachment(decode($1, 'hex'))", hash)
	equal(shop, first, `select parley_mail.send('shop', array['x@example.com'], 'a', idempotency_key => 'k',
		attachments => array[parley_mail.attachment('a.pdf', convert_to(repeat('0123456789', 100000), 'UTF8'))])`)
	shop.refusesMail(10, sendStored, hash)
	equal(b.session, true, "select ("+sentBytes+") = repeat('0123456789', 100000)", first)
	equal(b.session, 1, "select count(*)::int from parley_store.contents")
	// Small ones too, and for each recipient of many.
	shop.exec("select parley_mail.put_attachment('small')")
	shop.exec(`select parley_mail.send_batch('shop', array['x@example.com', 'y@example.com'], 'batch', attachments =>
		array[parley_mail.stored_attachment('a.pdf', sha256('small')), parley_mail.attachment('b', 'b')])`)
	equal(b.session, "small small", `select string_agg((`+strings.ReplaceAll(sentBytes, "$1", "m.message_id")+`), ' ') from parley_mail._p_message as m where m.subject = 'batch'`)
}

func TestStoredAttachmentsHaveLimitsAndAnEnd(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	role := b.role("shop")
	b.exec("select parley_mail.grant_right('SEND', $1)", role)
	shop := b.as(role)
	for statement, number := range map[string]int{
		"select parley_mail.put_attachment(null)": 10, "select parley_mail.put_attachment('x', keep => null)": 10, "select parley_mail.put_attachment('x', keep => '367 days')": 10,
		"select parley_mail.put_attachment('x', keep => '-1 days')": 10, "select parley_mail.put_attachment(convert_to(repeat('x', 10485761), 'UTF8'))": 12,
	} {
		shop.refusesMail(number, statement)
	}
	b.exec("select parley_mail.set_quota($1, stored_bytes => 1502000)", role)
	hash := value[string](shop, putAttachment, "0123456789")
	shop.refusesMail(13, putAttachment, "012345")
	shop.exec(putAttachment, "0123")
	shop.exec(putAttachment, "0123456789")
	// Many small ones have their weight: the rows themselves take space.
	shop.refusesMail(13, "select parley_mail.put_attachment(convert_to('small ' || n, 'UTF8')) from generate_series(1, 200) as n")
	// A rollback leaves nothing.
	shop.exec("select parley_mail.remove_attachment(a.sha256) from parley_mail.stored_attachments as a where a.bytes < 1000000")
	shop.exec("begin")
	shop.exec(putAttachment, "01234")
	shop.rollback()
	equal(b.session, 1, "select count(*)::int from parley_store.contents")
	// What is asked for longer stays longer; nothing shortens it.
	shop.exec("select parley_mail.put_attachment(convert_to(repeat('0123456789', 100000), 'UTF8'), keep => '1 minute')")
	equal(b.session, 0, "select parley_mail._p_expire_attachments()")
	b.exec("update parley_mail._p_attachment set expires_at = now() - interval '1 second'")
	shop.refusesMail(10, sendStored, hash)
	shop.exec(putAttachment, "0123456789")
	equal(b.session, 0, "select parley_mail._p_expire_attachments()")
	shop.exec(sendStored, hash)
	b.exec("update parley_mail._p_attachment set expires_at = now() - interval '1 second'")
	equal(b.session, 1, "select parley_mail._p_expire_attachments()")
	equal(b.session, 1, "select count(*)::int from parley_store.contents")
	// The last session of a role that is gone does not hold up that what it left goes.
	shop.exec(putAttachment, "01")
	b.exec("update parley._p_role_number set role = 0 where name = $1", role)
	holder := b.begin()
	holder.exec("select from parley_mail._p_attachment_owner for update")
	equal(b.session, 1, "select parley_mail._p_expire_attachments()")
	holder.rollback()
	equal(b.session, 0, "select parley_mail._p_expire_attachments()")
	equal(b.session, 0, "select count(*)::int from parley_mail._p_attachment_owner")
}

// What sessions of a role store at once counts as if they had stored it one after the other.
func TestQuotaOfStoredBytesHoldsForSessionsAtOnce(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	role := b.role("shop")
	b.exec("select parley_mail.grant_right('SEND', $1)", role)
	b.exec("select parley_mail.set_quota($1, stored_bytes => 700000)", role)
	first, second, old := b.as(role), b.as(role), b.as(role)
	first.exec("select parley_mail.put_attachment('x')")
	old.exec("begin isolation level repeatable read")
	equal(old, 1, "select count(*)::int from parley_mail.stored_attachments")
	first.exec("begin")
	first.exec(putAttachment, "0123")
	ended := make(chan error, 1)
	go func() {
		_, err := second.db.Exec(context.WithoutCancel(t.Context()), putAttachment, "4567")
		ended <- err
	}()
	b.waitForLock()
	first.commit()
	if refusal, ok := errors.AsType[*pgconn.PgError](<-ended); !ok || refusal.Code != "PM013" {
		t.Errorf("the second got %v, want PM013", refusal)
	}
	// At an older snapshot the count would be too small.
	_, err := old.db.Exec(t.Context(), putAttachment, "89ab")
	if refusal, ok := errors.AsType[*pgconn.PgError](err); !ok || refusal.Code != "40001" {
		t.Errorf("at an older snapshot it got %v, want 40001", err)
	}
	old.rollback()
	equal(first, int64(400001), "select sum(bytes)::bigint from parley_mail.stored_attachments")
}

// Of two who store the same at once the second waits; what a submission takes stays until its end.
func TestStoredAttachmentInTwoSessions(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	role := b.role("shop")
	b.exec("select parley_mail.grant_right('SEND', $1)", role)
	beside := func(s session, statement string, arguments ...any) <-chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := s.db.Exec(context.WithoutCancel(t.Context()), statement, arguments...)
			ended <- err
		}()
		b.waitForLock()
		return ended
	}
	var hash string
	for _, end := range []string{"rollback", "commit"} {
		first, second := b.as(role), b.as(role)
		first.exec("begin")
		hash = value[string](first, putAttachment, end)
		ended := beside(second, putAttachment, end)
		first.exec(end)
		if err := <-ended; err != nil {
			t.Errorf("after %s the second got %v", end, err)
		}
		equal(second, 1, "select count(*)::int from parley_mail.stored_attachments where sha256 = decode($1, 'hex')", hash)
	}
	sending, removing := b.as(role), b.as(role)
	sending.exec("begin")
	sending.exec(sendStored, hash)
	ended := beside(removing, "select parley_mail.remove_attachment(decode($1, 'hex'))", hash)
	sending.exec(sendStored, hash)
	sending.commit()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	b.requireSubmitted(2)
	// Whoever waits for a removal finds nothing.
	removing.exec(putAttachment, "commit")
	removing.exec("begin")
	removing.exec("select parley_mail.remove_attachment(decode($1, 'hex'))", hash)
	ended = beside(sending, sendStored, hash)
	removing.commit()
	if err := <-ended; err == nil {
		t.Error("a removed attachment was sent")
	}
	equal(b.session, 3, "select count(*)::int from parley_store.contents")
}
