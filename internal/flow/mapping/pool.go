package mapping

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// A Pool has the processes that run programs: for each language one for each processor, and one more for large messages. They are started
// when they are needed. A pool is for all hosts of a daemon.
type Pool struct {
	config PoolConfig
	mu     sync.Mutex
	crews  map[string]*crew
}

// PoolConfig says how processes are started.
type PoolConfig struct {
	// XSLT is the worker for stylesheets. Empty: parley-xslt beside this program or in PATH, and otherwise xsltproc of PATH.
	XSLT string
	// JQ is the command that runs [RunJQ]. Empty: this program with the arguments flow map-worker.
	JQ []string
	// Workers is how many processes of a language there are for small messages, 0: one for each processor.
	Workers int
}

// NewPool makes a pool, which starts nothing yet.
func NewPool(config PoolConfig) *Pool {
	if config.Workers == 0 {
		config.Workers = runtime.GOMAXPROCS(0)
	}
	return &Pool{config: config, crews: map[string]*crew{}}
}

// Names of programs that transform by stylesheets.
const (
	workerName    = "parley-xslt"
	xsltprocName  = "xsltproc"
	workerLibrary = "/usr/lib/parley" // where packages put the worker
)

// ErrNoXSLT is the error where no program transforms by stylesheets.
var ErrNoXSLT = errors.New("no program that transforms by stylesheets is installed: there is no parley-xslt and no xsltproc")

// ErrNoWorker is the error where the worker for stylesheets is missing, whether there is an xsltproc or not.
var ErrNoWorker = errors.New("the worker for stylesheets, parley-xslt, is not installed: install the package of parley, or build it with " +
	"parley flow map-worker install (on Debian it needs gcc, libc6-dev and libxslt1-dev)")

// FindWorker finds the worker for stylesheets where a pool does: beside this program, where packages put it, or in PATH.
func FindWorker() (string, error) {
	if self, err := os.Executable(); err == nil {
		if beside := filepath.Join(filepath.Dir(self), workerName); isProgram(beside) {
			return beside, nil
		}
	}
	if packaged := filepath.Join(workerLibrary, workerName); isProgram(packaged) {
		return packaged, nil
	}
	if found, err := exec.LookPath(workerName); err == nil {
		return found, nil
	}
	return "", ErrNoWorker
}

// findXSLT finds the program that transforms by stylesheets.
func (p *Pool) findXSLT() (string, error) {
	if p.config.XSLT != "" {
		return p.config.XSLT, nil
	}
	if found, err := FindWorker(); err == nil {
		return found, nil
	}
	if found, err := exec.LookPath(xsltprocName); err == nil {
		return found, nil
	}
	return "", ErrNoXSLT
}

func isProgram(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func isXsltproc(program string) bool { return filepath.Base(program) == xsltprocName }

// crew has the workers of a language.
type crew struct {
	command      []string
	small, large *lane
}

// lane has workers of which each works on one message at a time.
type lane struct {
	command []string
	isLarge bool
	places  chan struct{} // one for each worker that is at work
	mu      sync.Mutex
	idle    []*worker // the one that worked last at the end
	isOver  bool
}

func newLane(command []string, workers int, isLarge bool) *lane {
	return &lane{command: command, isLarge: isLarge, places: make(chan struct{}, workers)}
}

// crewOf gives the workers for a language.
func (p *Pool) crewOf(language string) (*crew, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.crews[language]; c != nil {
		return c, nil
	}
	command := p.config.JQ
	if language == XSLT {
		found, err := p.findXSLT()
		if err != nil {
			return nil, err
		}
		command = []string{found}
	} else if len(command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		command = []string{self, "flow", "map-worker"}
	}
	c := &crew{command: command, small: newLane(command, p.config.Workers, false), large: newLane(command, 1, true)}
	p.crews[language] = c
	return c, nil
}

// Close ends all processes. Nothing may be run any more.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.crews {
		c.small.close()
		c.large.close()
	}
}

func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isOver = true
	for _, w := range l.idle {
		w.close()
	}
	l.idle = nil
}

// take gives an idle worker, or starts one. isFresh asks for one that has run nothing.
func (l *lane) take(isFresh bool) (*worker, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.idle); n > 0 && !isFresh {
		w := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return w, nil
	}
	return startWorker(l.command, l.isLarge)
}

func (l *lane) giveBack(w *worker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isOver || w.isDead.Load() || w.runs >= runsMost || len(l.idle) >= cap(l.places) {
		w.close()
		return
	}
	l.idle = append(l.idle, w)
}

// runsMost is after how many messages a process is replaced, so that nothing that it keeps grows for ever.
const runsMost = 100_000

// run runs a program in a worker. One that dies may have been harmed by a message before: the run is repeated in a fresh one, once, and
// output begins anew then. So a message fails for what it is itself.
func (l *lane) run(ctx context.Context, p *program, lim limits, isUTF8 bool, inputs []*Body, output func() io.Writer) (answer, error) {
	select {
	case l.places <- struct{}{}:
		defer func() { <-l.places }()
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	for isFresh := false; ; isFresh = true {
		w, err := l.take(isFresh)
		if err != nil {
			return answer{}, err
		}
		wasFresh := w.runs == 0
		a, err := w.run(ctx, p, lim, isUTF8, inputs, output())
		if err == nil {
			l.giveBack(w)
			return a, nil
		}
		d, hasDied := errors.AsType[*died](err)
		if !hasDied || wasFresh || d.isOfTime() {
			return a, err
		}
	}
}
