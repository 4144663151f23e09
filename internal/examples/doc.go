// Package examples holds no code: its test runs the programs in the folder examples, in each language, against a real server,
// and asks over TCP what the other tests ask on a socket.
package examples
