package program

import "syscall"

// ownGroup puts a program into a process group of its own, so that a signal to the daemon's terminal is not for it, and lets
// it get a signal to leave when the daemon dies.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
