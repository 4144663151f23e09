package top

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-broker/parley"
)

// conversationsMost is how many conversations a look reads.
const conversationsMost = 200

// lookTimeout bounds one look, and one change.
const lookTimeout = 15 * time.Second

// Look reads what goes on now, as far as the screen shows it.
func Look(ctx context.Context, db parley.DB) (parley.Activity, error) {
	return parley.ReadActivity(ctx, db, conversationsMost)
}

// Model is the state of the screen; it is a [tea.Model].
type Model struct {
	look   func() (parley.Activity, error)
	change func(queue string, on bool) error

	interval      time.Duration
	width, height int

	latest   *parley.Activity
	snapshot Snapshot
	failure  error // of the last look
	notice   string
	isAhead  bool // a look is under way
	ticks    int  // the look that is due; older ones were overtaken

	screen   screen
	sortings [screenCount]sorting
	selected [screenCount]string // key of the line
	filter   string
	isTyping bool
	asked    *question
}

// question is what the person is asked before a queue is switched.
type question struct {
	queue string
	on    bool
}

type (
	lookedMsg struct {
		activity parley.Activity
		err      error
	}
	tickMsg    struct{ number int }
	changedMsg struct {
		question
		err error
	}
)

// New makes a screen that looks once each interval, over a db that may be used by several goroutines, until ctx ends.
func New(ctx context.Context, db parley.DB, interval time.Duration) Model {
	return Model{
		look: func() (parley.Activity, error) {
			ctx, cancel := context.WithTimeout(ctx, lookTimeout)
			defer cancel()
			return Look(ctx, db)
		},
		change: func(queue string, on bool) error {
			ctx, cancel := context.WithTimeout(ctx, lookTimeout)
			defer cancel()
			return parley.SetQueueStatus(ctx, db, queue, on)
		},
		interval: interval,
		width:    80,
		height:   24,
		sortings: firstSorting,
	}
}

// Init looks for the first time.
func (m Model) Init() tea.Cmd { return m.lookNow() }

func (m Model) lookNow() tea.Cmd {
	return func() tea.Msg {
		activity, err := m.look()
		return lookedMsg{activity, err}
	}
}

func (m Model) lookLater() tea.Cmd {
	number := m.ticks
	return tea.Tick(m.interval, func(time.Time) tea.Msg { return tickMsg{number} })
}

// Update takes a key, the size of the terminal, or what a look has seen.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case lookedMsg:
		return m.looked(msg)
	case tickMsg:
		if msg.number == m.ticks && !m.isAhead {
			m.isAhead = true
			return m, m.lookNow()
		}
	case changedMsg:
		m.notice = "queue " + msg.queue + " is switched " + onOff(msg.on)
		if msg.err != nil {
			m.notice = reason(msg.err)
		}
		return m.refresh()
	case tea.KeyPressMsg:
		return m.pressed(msg)
	}
	return m, nil
}

func (m Model) looked(msg lookedMsg) (tea.Model, tea.Cmd) {
	m.isAhead = false
	m.ticks++
	m.failure = msg.err
	if msg.err == nil {
		m.snapshot = Compare(m.latest, msg.activity)
		m.latest = &msg.activity
	}
	return m, m.lookLater()
}

// refresh looks now instead of when it is due.
func (m Model) refresh() (tea.Model, tea.Cmd) {
	if m.isAhead {
		return m, nil
	}
	m.isAhead = true
	m.ticks++
	return m, m.lookNow()
}

// reason is what an error says to a person: the broker's own words where there are some.
func reason(err error) string {
	if broker, ok := errors.AsType[*parley.Error](err); ok {
		return broker.Error()
	}
	return err.Error()
}

func onOff(on bool) string {
	if on {
		return parley.QueueOn
	}
	return parley.QueueOff
}
