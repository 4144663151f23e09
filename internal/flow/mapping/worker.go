package mapping

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
)

// How workers end by themselves.
const (
	exitMemory = 71
	exitTime   = 73
)

// worker is a process that runs programs, one at a time.
type worker struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	known   map[[keyBytes]byte]bool // programs that it has compiled; it may have forgotten some
	runs    int
	isDead  atomic.Bool
}

// startWorker starts a process. It ends when its input does, and on Linux with the program that has started it.
func startWorker(command []string, isLarge bool) (*worker, error) {
	process := exec.Command(command[0], command[1:]...)
	w := &worker{command: process, known: map[[keyBytes]byte]bool{}}
	w.command.Env = []string{"LC_ALL=C.UTF-8"}
	if zone, isSet := os.LookupEnv("TZ"); isSet {
		w.command.Env = append(w.command.Env, "TZ="+zone)
	}
	w.command.Dir = "/"
	var err error
	if w.in, err = w.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("make a pipe to a map worker: %w", err)
	}
	out, err := w.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe to a map worker: %w", err)
	}
	w.out = bufio.NewReaderSize(out, chunkBytes)
	if err := w.command.Start(); err != nil {
		return nil, fmt.Errorf("start the map worker %s: %w", command[0], err)
	}
	if isLarge {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, w.command.Process.Pid, largeNice) // without it, it takes part like the others
	}
	return w, nil
}

// largeNice is the niceness of the worker of large messages, so that small ones do not wait for the processor.
const largeNice = 19

// died is the error of a worker that has ended.
type died struct {
	state *os.ProcessState
	err   error
}

func (d *died) Error() string { return fmt.Sprintf("the map worker has died: %v", d.state) }

func (d *died) Unwrap() error { return d.err }

// exitRuntime is how a program in Go ends that gets no more memory, or panics.
const exitRuntime = 2

// isOfMemory says that the process has reached its limit of memory. A program in Go gives no code of its own for that: then it has used
// most of its memory.
func (d *died) isOfMemory(limit uint64) bool {
	if d.state == nil {
		return false
	}
	used, is := d.state.SysUsage().(*syscall.Rusage)
	return d.state.ExitCode() == exitMemory ||
		is && d.state.ExitCode() == exitRuntime && uint64(used.Maxrss)*maxrssBytes > limit/2
}

// isOfTime says that the process has reached its limit of time.
func (d *died) isOfTime() bool {
	if d.state == nil {
		return false
	}
	status, is := d.state.Sys().(syscall.WaitStatus)
	return d.state.ExitCode() == exitTime || is && status.Signaled() && status.Signal() == syscall.SIGXCPU
}

// errStill is the cause of the end of a run that does not get on.
var errStill = errors.New("the map does not get on")

// run runs a program on inputs. The result goes to output. An error other than that of ctx is a [died].
func (w *worker) run(ctx context.Context, p *program, l limits, isUTF8 bool, inputs []*Body, output io.Writer) (answer, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	watching := time.AfterFunc(l.still(), func() { w.watch(ctx, l.still(), end) })
	defer watching.Stop()
	stop := context.AfterFunc(ctx, w.kill)
	a, err := w.talk(p, l, isUTF8, inputs, output)
	if !stop() && err == nil && w.isDead.Load() {
		err = context.Cause(ctx) // it was killed behind its answer
	}
	w.runs++
	if err == nil {
		return a, nil
	}
	w.kill()
	_ = w.command.Wait() // the state says how it has ended
	if ctx.Err() != nil {
		return a, context.Cause(ctx)
	}
	if _, isOfOutput := errors.AsType[*outputError](err); isOfOutput {
		return a, err
	}
	return a, &died{w.command.ProcessState, err}
}

// stillFactor is how many times its time of the processor a run may stand still by the clock.
const stillFactor = 5

// still is how long a run may stand still.
func (l limits) still() time.Duration { return stillFactor * time.Duration(l.seconds) * time.Second }

// watch ends a run that had no processor for some time. The process bounds its time of the processor itself, so a run that gets on has an
// end. One that waits for a processor, beside others or because its priority is low, is not at fault, however long that takes. Where it
// cannot be seen whether the process gets on, the run ends at once.
func (w *worker) watch(ctx context.Context, still time.Duration, end context.CancelCauseFunc) {
	before, isKnown := processorTime(w.command.Process.Pid)
	for isKnown {
		if backoff.Wait(ctx, still) != nil {
			return
		}
		var now uint64
		if now, isKnown = processorTime(w.command.Process.Pid); now == before {
			break
		}
		before = now
	}
	end(errStill)
}

// outputError is an error of the writer that takes the result.
type outputError struct{ err error }

func (o *outputError) Error() string { return o.err.Error() }

func (o *outputError) Unwrap() error { return o.err }

type outputWriter struct{ w io.Writer }

func (o outputWriter) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		return n, &outputError{err}
	}
	return n, nil
}

// talk asks, and reads the answer.
func (w *worker) talk(p *program, l limits, isUTF8 bool, inputs []*Body, output io.Writer) (answer, error) {
	if a, err := w.compile(p, l); err != nil || a.status != statusDone {
		return a, err
	}
	a, err := w.ask(p, l, isUTF8, inputs, output)
	if err != nil || a.status != statusUnknown {
		return a, err
	}
	delete(w.known, p.key) // it had no room for it any more
	if a, err := w.compile(p, l); err != nil || a.status != statusDone {
		return a, err
	}
	return w.ask(p, l, isUTF8, inputs, output)
}

// compile sends a program that the process does not have.
func (w *worker) compile(p *program, l limits) (answer, error) {
	if w.known[p.key] {
		return answer{}, nil
	}
	if _, err := w.in.Write(compileRequest(p, l)); err != nil {
		return answer{}, err
	}
	a, err := readAnswer(w.out, io.Discard)
	if err == nil && a.status == statusDone {
		w.known[p.key] = true
	}
	return a, err
}

func (w *worker) ask(p *program, l limits, isUTF8 bool, inputs []*Body, output io.Writer) (answer, error) {
	request := runRequest(p, l, isUTF8, len(inputs))
	if len(inputs) == 1 && !inputs[0].isLarge() {
		joined := bytesWriter(request)
		if err := writeInput(&joined, inputs[0]); err != nil {
			return answer{}, err
		}
		request, inputs = joined, nil
	}
	if _, err := w.in.Write(request); err != nil {
		return answer{}, err
	}
	for _, in := range inputs {
		if err := writeInput(w.in, in); err != nil {
			return answer{}, err
		}
	}
	return readAnswer(w.out, outputWriter{output})
}

type bytesWriter []byte

func (b *bytesWriter) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// kill ends the process at once.
func (w *worker) kill() {
	if w.isDead.CompareAndSwap(false, true) {
		_ = w.command.Process.Kill() // it may have ended
	}
}

// close ends the process, and waits for that.
func (w *worker) close() {
	_ = w.in.Close() // it ends with its input
	w.kill()
	_ = w.command.Wait() // killed as it is, it has nothing to say
}
