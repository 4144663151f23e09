// Package parts reads the parts of a message in the form in which services get them: its text and HTML, its attachments, its author and its
// recipients.
//
// A message is read once, as a stream, and whatever it says is bounded by [Limits]. Nothing in it is an error: what is not as the standards
// say, or is beyond a limit, is a [Problem], and the rest is read. A part has its place in the message, so that its bytes can be read from
// there; sql/mail/services/parts.sql decodes them as this package does.
package parts
