// Package receive takes mail over SMTP: receive connectors, their limits and permissions, TLS, authentication, and the reply to each
// message.
//
// The grammar of commands is that of go-smtp. The bytes are ours: the library reads from a wire that hands it one checked line at a time,
// answers what the library does not know or cannot do here (STARTTLS, XCLIENT, BDAT, HELP), counts and delays replies, and reads
// message data by itself. So only CRLF ends a line, and only CRLF.CRLF a message.
package receive
