//go:build unix

package site

import (
	"os/exec"
	"syscall"
)

// apart keeps Ctrl-C in the terminal from the process: it is for its parent, which stops it when the work is done.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
