package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/examples/flow"
	"github.com/parley-broker/parley/internal/measure/site"
	"github.com/parley-broker/parley/schema"
)

const (
	// flowLease is how long what a node had in its hands waits for the other when it was killed.
	flowLease = 5 * time.Second
	// flowPatience is how long the rest may take at the end while nothing moves: longer than a minute, after which a host looks again for
	// work that nobody told it of.
	flowPatience = 100 * time.Second
	// flowPoll is how often the operator, and in the end the demo, asks for what is left.
	flowPoll = 200 * time.Millisecond
	// flowRepeats is after which time a client of HTTP tries again.
	flowRepeats = 100 * time.Millisecond
)

// flowRun is a run under way.
type flowRun struct {
	stage
	config  FlowConfig
	db      *database
	watcher *pgx.Conn // of the samples
	folder  *site.Folder
	program string
	began   time.Time
	part    atomic.Int32
	killed  int

	// The two nodes. The first takes orders by HTTP, and is killed.
	nodes     []*site.Daemon
	listen    string
	ready     string // where the second listens, for its metrics
	token     string
	warehouse warehouse
	address   string // of the warehouse
	client    *http.Client

	taken                                   map[string]*atomic.Int64
	rolledBack, mended, billed, again, late atomic.Int64

	mu      sync.Mutex
	orders  []order
	samples []OrdersSample
	marks   []mailMark
}

// RunFlow plays the demo of integration in a database of its own, beside the one that admin is connected to, and checks every order. A run
// that found something wrong is a FlowResult that has not Passed, and no error.
func RunFlow(ctx context.Context, admin *pgx.Conn, config FlowConfig) (FlowResult, error) {
	if err := config.Validate(); err != nil {
		return FlowResult{}, err
	}
	db, err := createDatabase(ctx, admin, config.Database)
	if err != nil {
		return FlowResult{}, err
	}
	r := &flowRun{config: config, db: db, taken: map[string]*atomic.Int64{}, client: &http.Client{Timeout: 10 * time.Second}}
	for _, way := range flowWays {
		r.taken[way] = &atomic.Int64{}
	}
	if config.Observer != nil {
		r.observer = config.Observer
	}
	result, err := r.play(ctx)
	err = errors.Join(err, r.close(ctx))
	if !config.Keep {
		err = errors.Join(err, db.drop(ctx))
	}
	return result, err
}

func (r *flowRun) play(ctx context.Context) (FlowResult, error) {
	if err := r.prepare(ctx); err != nil {
		return FlowResult{}, err
	}
	background, ctx := newCrew(ctx)
	defer background.fail(nil)
	working, stopWorking := context.WithCancel(ctx)
	defer stopWorking()
	background.start(func() error { return r.repeatedly(working, drainPoll, r.receiveBilling) })
	background.start(func() error { return r.repeatedly(working, flowPoll, r.mend) })
	background.start(func() error { return r.repeatedly(working, flowPoll, r.dropLate) })
	for _, backEnd := range flowBackEnds {
		background.start(func() error { return r.repeatedly(working, drainPoll, answerAs(backEnd)) })
	}
	r.began = time.Now()
	err := watched(ctx, background, r.watch, func() error {
		err := r.workload(ctx)
		if err == nil {
			err = r.settle(ctx)
		}
		stopWorking()
		background.working.Wait()
		return err
	})
	if err != nil {
		return FlowResult{}, err
	}
	return r.conclude(ctx)
}

// prepare makes the shop, the warehouse, the definitions and the nodes.
func (r *flowRun) prepare(ctx context.Context) (err error) {
	r.notice("Installing the schema; a shop with a table, a service, folders and a warehouse behind TCP.")
	if r.control, err = r.db.connect(ctx); err != nil {
		return err
	}
	if r.watcher, err = r.db.connect(ctx); err != nil {
		return err
	}
	if err := schema.Install(ctx, r.control); err != nil {
		return fmt.Errorf("install the schema: %w", err)
	}
	if err := r.makeShop(ctx); err != nil {
		return err
	}
	if r.address, err = r.warehouse.serve(ctx, "127.0.0.1:0"); err != nil {
		return err
	}
	for _, address := range []*string{&r.listen, &r.ready} {
		if *address, err = site.FreeAddress(ctx); err != nil {
			return err
		}
	}
	if err := r.define(ctx); err != nil {
		return err
	}
	r.nodes = make([]*site.Daemon, 2)
	for number := range r.nodes {
		if err := r.startNode(ctx, number); err != nil {
			return err
		}
	}
	r.notice(fmt.Sprintf("%d nodes serve the host. Orders come as flat files, XML files, by HTTP and as rows of a table, "+
		"and go to a folder, a table, a service and the warehouse. About those of partners an orchestration asks two back ends at once, "+
		"and the outcome goes to a table, a folder and by mail.",
		len(r.nodes)))
	return nil
}

// makeShop makes folders, tables and services of the shop.
func (r *flowRun) makeShop(ctx context.Context) (err error) {
	if r.program = r.config.Program; r.program == "" {
		if r.program, err = os.Executable(); err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
	}
	if r.folder, err = site.NewFolder(); err != nil {
		return err
	}
	for _, name := range []string{"in", "archive", "outcomes"} {
		if _, err := r.folder.Make(name); err != nil {
			return err
		}
	}
	r.token = fmt.Sprintf("token-%d", time.Now().UnixNano())
	if err := os.WriteFile(r.path("http.token"), []byte(r.token), 0o600); err != nil {
		return fmt.Errorf("write the token of HTTP: %w", err)
	}
	script, err := fs.ReadFile(flow.Files, "shop.sql")
	if err == nil {
		_, err = r.control.Exec(ctx, string(script), pgx.QueryExecModeSimpleProtocol)
	}
	if err != nil {
		return fmt.Errorf("create the objects of the demo: %w", err)
	}
	return nil
}

// path is that of a file of the run.
func (r *flowRun) path(names ...string) string {
	return filepath.Join(append([]string{r.folder.Path}, names...)...)
}

// define applies the definitions as an operator would.
func (r *flowRun) define(ctx context.Context) error {
	if err := os.CopyFS(r.path("definitions"), flow.Files); err != nil {
		return fmt.Errorf("write the definitions: %w", err)
	}
	var role string
	if err := r.control.QueryRow(ctx, "select current_user").Scan(&role); err != nil {
		return fmt.Errorf("read the role: %w", err)
	}
	apply := exec.CommandContext(ctx, r.program, "flow", "apply", r.path("definitions"), "--dsn", ownDSN(r.config.DSN, r.config.Database),
		"--set", "ROLE="+role, "--set", "FOLDER="+r.folder.Path, "--set", "LISTEN="+r.listen, "--set", "WAREHOUSE="+r.address)
	if said, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("apply the definitions: %w\n%s", err, said)
	}
	return nil
}

// startNode starts a node. The first takes orders by HTTP, which the operator of the second does not permit.
func (r *flowRun) startNode(ctx context.Context, number int) error {
	name := fmt.Sprint("node", number+1)
	config := site.DaemonConfig{
		Program: r.program, Name: name, Folder: r.folder.Path, System: "flow", ReadyAt: r.listen,
		DSNs: []string{ownDSN(r.config.DSN, r.config.Database)},
		Args: []string{
			"--node", name, "--lease", flowLease.String(), "--allow-folder", r.folder.Path,
			"--allow-connect", r.address, "--allow-secret", "file:" + r.path("http.token"),
		},
	}
	if number == 0 {
		config.Args = append(config.Args, "--allow-listen", r.listen)
	} else {
		config.ReadyAt = r.ready
		config.Args = append(config.Args, "--http", r.ready)
	}
	node, err := site.StartDaemon(ctx, config)
	if err != nil {
		return fmt.Errorf("start a node: %w", err)
	}
	r.nodes[number] = node
	return nil
}

func (r *flowRun) close(ctx context.Context) (err error) {
	for _, node := range r.nodes {
		if node != nil {
			err = errors.Join(err, node.Stop(ctx))
		}
	}
	r.warehouse.leave()
	if r.folder != nil {
		err = errors.Join(err, r.folder.Remove())
	}
	for _, conn := range []*pgx.Conn{r.control, r.watcher} {
		if conn != nil {
			closeConn(ctx, conn)
		}
	}
	return err
}
