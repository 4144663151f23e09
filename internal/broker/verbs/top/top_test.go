package top_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/verbs/top"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/parleytest"
)

// shop makes queues web and shop with so many messages in shop, each in a conversation of its own.
func shop(t *testing.T, messages int) *pgxpool.Pool {
	t.Helper()
	pool := parleytest.Database(t)
	_, err := pool.Exec(t.Context(), `
		select parley.create_queue('web'), parley.create_queue('shop');
		select parley.create_service('Web', 'web'), parley.create_service('Shop', 'shop', array['DEFAULT'])`)
	if err != nil {
		t.Fatal(err)
	}
	send(t, pool, messages)
	return pool
}

func send(t *testing.T, pool *pgxpool.Pool, messages int) {
	t.Helper()
	_, err := pool.Exec(t.Context(),
		"select parley.send(parley.begin_dialog('Web', 'Shop'), 'DEFAULT', 'x'::text) from generate_series(1, $1)", messages)
	if err != nil {
		t.Fatal(err)
	}
}

// person sits in front of the screen, whose next reading is an hour away.
type person struct {
	t     *testing.T
	model tea.Model
}

func watch(t *testing.T, pool *pgxpool.Pool) *person {
	t.Helper()
	p := &person{t: t, model: top.New(t.Context(), pool, time.Hour)}
	p.send(p.model.Init()())
	p.send(tea.WindowSizeMsg{Width: 120, Height: 20})
	return p
}

// styling finds the codes that make text bold, or red.
var styling = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// screen is the text that the person reads.
func (p *person) screen() string { return styling.ReplaceAllString(p.model.View().Content, "") }

// send gives a message to the model, and what it wants done.
func (p *person) send(msg tea.Msg) tea.Cmd {
	var cmd tea.Cmd
	p.model, cmd = p.model.Update(msg)
	return cmd
}

var namedKeys = map[string]rune{
	"enter": tea.KeyEnter, "esc": tea.KeyEsc, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "backspace": tea.KeyBackspace,
}

// press presses keys; what the last one wants done is returned.
func (p *person) press(keys ...string) (cmd tea.Cmd) {
	for _, key := range keys {
		if named, ok := namedKeys[key]; ok {
			cmd = p.send(tea.KeyPressMsg{Code: named})
		} else {
			cmd = p.send(tea.KeyPressMsg{Code: []rune(key)[0], Text: key})
		}
	}
	return cmd
}

// line gives the first line of the screen that begins with a text, with single blanks.
func (p *person) line(beginning string) string {
	for text := range strings.Lines(p.screen()) {
		if text = strings.Join(strings.Fields(text), " "); strings.HasPrefix(text, beginning) {
			return text
		}
	}
	return ""
}

func (p *person) expect(beginning, want string) {
	p.t.Helper()
	if got := p.line(beginning); got != want {
		p.t.Errorf("the line of %q is %q, want %q on\n%s", beginning, got, want, p.screen())
	}
}

func TestScreenShowsWhatWaits(t *testing.T) {
	t.Parallel()
	p := watch(t, shop(t, 1234))
	p.expect("QUEUE", "QUEUE STATUS WAITING↓ OLDEST IN/S OUT/S READERS LOCK HOLDERS")
	if line := p.line("shop"); !strings.HasPrefix(line, "shop ON 1,234 ") || !strings.HasSuffix(line, " - - - -") {
		t.Errorf("shop: %q", line)
	}
	p.expect("web", "web ON 0 - - - - -")
	if first := strings.Split(p.screen(), "\n")[4]; !strings.HasPrefix(first, "shop") {
		t.Errorf("the longest queue is not first, but %q", first)
	}
}

func TestTwoReadingsGiveRates(t *testing.T) {
	t.Parallel()
	pool := shop(t, 5)
	before, err := top.Read(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	send(t, pool, 30)
	for range 12 {
		if _, err := parley.Receive(t.Context(), pool, "shop", parley.Top(1)); err != nil {
			t.Fatal(err)
		}
	}
	now, err := top.Read(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	now.At = before.At.Add(10 * time.Second)
	snapshot := top.Compare(&before, now)
	i := slices.IndexFunc(snapshot.Queues, func(q top.Queue) bool { return q.Queue == "shop" })
	if in, out := *snapshot.Queues[i].InPerSecond, *snapshot.Queues[i].OutPerSecond; in != 3 || out != 1.2 {
		t.Errorf("%v in and %v out a second, want 3 and 1.2", in, out)
	}
}

func TestScreenIsSortedAndFilteredByKeys(t *testing.T) {
	t.Parallel()
	p := watch(t, shop(t, 2))
	first := func() string { return strings.Fields(strings.Split(p.screen(), "\n")[4])[0] }
	for _, step := range []struct {
		keys  []string
		first string
	}{
		{[]string{"r"}, "web"},                    // fewest first
		{[]string{"r"}, "shop"},                   // most first
		{[]string{"/", "w", "e", "enter"}, "web"}, // only what has "we" in it
		{[]string{"esc"}, "shop"},
		{[]string{"s", "s", "s", "s", "s", "s"}, "shop"}, // round to the first column, by name
		{[]string{"r"}, "web"},
	} {
		if p.press(step.keys...); first() != step.first {
			t.Errorf("after %v %s is first, want %s:\n%s", step.keys, first(), step.first, p.screen())
		}
	}
	p.press("/", "x", "y", "backspace", "y")
	p.expect("[1 queues]", "[1 queues] 2 conversations 3 waits 4 hosts 5 ports 6 orchestrations filter: xy_")
}

func TestQueueIsPausedAfterAsking(t *testing.T) {
	t.Parallel()
	pool := shop(t, 1)
	p := watch(t, pool)
	isPaused := func() bool {
		queues, err := operate.ReadQueues(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		queue := queues[slices.IndexFunc(queues, func(q operate.QueueStatus) bool { return q.Queue == "shop" })]
		if queue.Status != operate.QueueOn {
			t.Errorf("the queue is %s", queue.Status)
		}
		return queue.ReadersPausedAt != nil
	}
	if cmd := p.press("p"); cmd != nil || p.line("Pause the readers of queue shop?") == "" {
		t.Fatalf("p does not ask:\n%s", p.screen())
	}
	if cmd := p.press("n"); cmd != nil || isPaused() {
		t.Error("n pauses the readers")
	}
	for _, want := range []struct {
		isPaused      bool
		shown, notice string
	}{{true, "shop ON, PAUSED ", "the readers of queue shop are paused"}, {false, "shop ON ", "the readers of queue shop go on"}} {
		// The change wants a reading, which shows its effect.
		p.send(p.send(p.press("p", "y")())())
		if isPaused() != want.isPaused {
			t.Errorf("paused: %v, want %v", isPaused(), want.isPaused)
		}
		if line := p.line("shop"); !strings.HasPrefix(line, want.shown) {
			t.Errorf("shop is shown as %q", line)
		}
		p.expect("the readers", want.notice)
	}
}

func TestQueueThatMayNotBePausedShowsWhy(t *testing.T) {
	t.Parallel()
	pool := shop(t, 1)
	p := watch(t, pool)
	cmd := p.press("p", "y")
	if _, err := pool.Exec(t.Context(), "select parley.drop_service('Shop'), parley.drop_queue('shop')"); err != nil {
		t.Fatal(err)
	}
	p.send(cmd())
	if !strings.Contains(p.screen(), `queue "shop" does not exist`) {
		t.Errorf("no reason on the screen:\n%s", p.screen())
	}
}

func TestConversationsShowWhichSessionLocksThem(t *testing.T) {
	t.Parallel()
	pool := shop(t, 2)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	taken, err := parley.Receive(t.Context(), tx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	var pid string
	if err := tx.QueryRow(t.Context(), "select pg_backend_pid()::text").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	p := watch(t, pool)
	if line := p.line("shop"); !strings.HasSuffix(line, " "+pid) {
		t.Errorf("queue: %q, locked by %s", line, pid)
	}
	p.press("tab")
	handle := taken[0].ConversationHandle.String()
	if line := p.line(handle); !strings.HasPrefix(line, handle+" shop Shop Web CO 1 ") || !strings.Contains(line, " "+pid+" postgres ") {
		t.Errorf("conversation: %q, locked by %s", line, pid)
	}
	p.press("tab")
	if line := p.line(pid); !strings.Contains(line, "idle in transaction") || !strings.Contains(line, "its client") {
		t.Errorf("session: %q", line)
	}
}

func TestScreenFitsTheTerminal(t *testing.T) {
	t.Parallel()
	pool := shop(t, 40)
	if _, err := pool.Exec(t.Context(), `select parley.create_queue(E'[a very long name of a queue \u001b, longer than it has to be]')`); err != nil {
		t.Fatal(err)
	}
	p := watch(t, pool)
	for _, size := range []tea.WindowSizeMsg{{Width: 200, Height: 50}, {Width: 80, Height: 24}, {Width: 40, Height: 10}, {Width: 20, Height: 6}, {Width: 1, Height: 1}} {
		p.send(size)
		for range 3 {
			p.press("tab", "down", "down")
			lines := strings.Split(p.screen(), "\n")
			for _, line := range lines {
				if lipgloss.Width(line) > size.Width || strings.Contains(line, "\x1b") {
					t.Errorf("%d columns: line of %d: %q", size.Width, lipgloss.Width(line), line)
				}
			}
			if len(lines) > max(size.Height, 6) {
				t.Errorf("%d lines on a terminal of %d", len(lines), size.Height)
			}
		}
	}
	p.send(tea.WindowSizeMsg{Width: 30, Height: 10})
	if p.press("1"); !strings.HasPrefix(p.line("shop")+" ", "shop 40 ") {
		t.Errorf("a narrow terminal shows %q of shop", p.line("shop"))
	}
}

func TestScreenOutlivesAFailedReading(t *testing.T) {
	t.Parallel()
	pool := shop(t, 3)
	p := watch(t, pool)
	read := p.press(" ")
	if _, err := pool.Exec(t.Context(), "alter function parley.queue_activity(parley.caller) rename to gone"); err != nil {
		t.Fatal(err)
	}
	if next := p.send(read()); next == nil || p.line("trying again") == "" || p.line("shop") == "" {
		t.Errorf("after a failed poll:\n%s", p.screen())
	}
	if _, err := pool.Exec(t.Context(), "alter function parley.gone(parley.caller) rename to queue_activity"); err != nil {
		t.Fatal(err)
	}
	if p.send(p.press(" ")()); p.line("trying again") != "" {
		t.Errorf("after a good poll:\n%s", p.screen())
	}
}

func TestProgramEndsByKey(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	program := tea.NewProgram(top.New(t.Context(), shop(t, 1), time.Hour), tea.WithInput(strings.NewReader("q")), tea.WithOutput(&out))
	if _, err := program.Run(); err != nil {
		t.Fatal(err)
	}
}

func TestSnapshotIsPrintedForPeopleAndPrograms(t *testing.T) {
	t.Parallel()
	activity, err := top.Read(t.Context(), shop(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	snapshot := top.Compare(nil, activity)
	var text bytes.Buffer
	if err := top.Print(&text, snapshot); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Queues\n", "\nshop   ON", "Conversations\n", "Waits: none\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	document, err := json.Marshal(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"waiting_messages":2`, `"in_per_second":null`, `"sessions":[]`, `"locked_by":null`, `"lock_holders":[]`} {
		if !strings.Contains(string(document), want) {
			t.Errorf("no %s in %s", want, document)
		}
	}
}
