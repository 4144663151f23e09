// Package message reads and writes what stands around the body of a mail message: addresses, the header block, trace fields, and the
// envelope under which a message is handed to the store. It opens nothing and waits for nothing.
package message
