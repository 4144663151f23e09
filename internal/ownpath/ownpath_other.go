//go:build !unix

package ownpath

// Require accepts every path: who may write where is not decided by modes here.
func Require(string, string) error { return nil }
