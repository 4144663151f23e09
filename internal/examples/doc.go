// Package examples holds no code: its test runs the programs in the folder examples, in each language, against a real server.
package examples
