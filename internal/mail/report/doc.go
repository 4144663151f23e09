// Package report composes delivery status notifications: what became of a message, for whoever sent it.
//
// A report has three parts (RFC 6522): a text for people, the fields of RFC 3464 for programs, and the message or its header. It goes to
// the envelope sender from the null sender, so that nothing is reported about it. Which recipients are reported, and whether, is decided
// by the database; here is only its form.
//
// Sources: RFC 3461, RFC 3464, RFC 6522, RFC 6533 (addresses beyond ASCII), RFC 3834 (Auto-Submitted), spec/hub-transport.md section 9.
package report
