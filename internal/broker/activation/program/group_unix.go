//go:build unix && !linux

package program

import "syscall"

// ownGroup puts a program into a process group of its own, so that a signal to the daemon's terminal is not for it.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
