package top

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-broker/parley"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/operate"
)

// conversationsMost is how many conversations are read at once.
const conversationsMost = 200

// readTimeout bounds one reading, and one change.
const readTimeout = 15 * time.Second

// Reading is the activity of the broker and of integration at one moment.
type Reading struct {
	operate.Activity
	Nodes []flowstore.HostNode
	Ports []flowstore.PortActivity

	Orchestrations []flowstore.Orchestration
}

// Read reads what goes on now, as far as the screen shows it. A role that may not use integration sees nothing of it.
func Read(ctx context.Context, db parley.DB) (r Reading, err error) {
	if r.Activity, err = operate.ReadActivity(ctx, db, conversationsMost); err != nil {
		return r, err
	}
	isVisible, err := flowstore.IsVisible(ctx, db)
	if err != nil || !isVisible {
		return r, err
	}
	if r.Nodes, err = flowstore.Hosts(ctx, db, flowstore.Scope{}); err != nil {
		return r, err
	}
	if r.Ports, err = flowstore.PortActivities(ctx, db); err != nil {
		return r, err
	}
	r.Orchestrations, err = flowstore.Orchestrations(ctx, db, flowstore.Scope{})
	return r, err
}

// Model is the state of the screen; it is a [tea.Model].
type Model struct {
	read   func() (Reading, error)
	change func(queue string, on bool) error

	interval      time.Duration
	width, height int

	latest   *Reading
	snapshot Snapshot
	failure  error // of the last reading
	notice   string
	isAhead  bool // a reading is under way
	ticks    int  // the reading that is due; older ones were overtaken

	screen   screen
	sortings [screenCount]sorting
	selected [screenCount]string // key of the line
	filter   string
	isTyping bool
	asked    *question
}

// question is a question to the person before the readers of a queue are paused, or go on.
type question struct {
	queue   string
	resumes bool
}

type (
	readMsg struct {
		reading Reading
		err     error
	}
	tickMsg    struct{ number int }
	changedMsg struct {
		question
		err error
	}
)

// New makes a screen that reads once each interval, over a db that may be used by several goroutines, until ctx ends.
func New(ctx context.Context, db parley.DB, interval time.Duration) Model {
	return Model{
		read: func() (Reading, error) {
			ctx, cancel := context.WithTimeout(ctx, readTimeout)
			defer cancel()
			return Read(ctx, db)
		},
		change: func(queue string, resumes bool) error {
			ctx, cancel := context.WithTimeout(ctx, readTimeout)
			defer cancel()
			if resumes {
				return operate.ResumeReaders(ctx, db, queue)
			}
			return operate.PauseReaders(ctx, db, queue)
		},
		interval: interval,
		width:    80,
		height:   24,
		sortings: firstSorting,
	}
}

// Init reads for the first time.
func (m Model) Init() tea.Cmd { return m.readNow() }

func (m Model) readNow() tea.Cmd {
	return func() tea.Msg {
		reading, err := m.read()
		return readMsg{reading, err}
	}
}

func (m Model) readLater() tea.Cmd {
	number := m.ticks
	return tea.Tick(m.interval, func(time.Time) tea.Msg { return tickMsg{number} })
}

// Update takes a key, the size of the terminal, or a reading.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case readMsg:
		return m.updated(msg)
	case tickMsg:
		if msg.number == m.ticks && !m.isAhead {
			m.isAhead = true
			return m, m.readNow()
		}
	case changedMsg:
		m.notice = "the readers of queue " + msg.queue + " are paused"
		if msg.resumes {
			m.notice = "the readers of queue " + msg.queue + " go on"
		}
		if msg.err != nil {
			m.notice = reason(msg.err)
		}
		return m.refresh()
	case tea.KeyPressMsg:
		return m.pressed(msg)
	}
	return m, nil
}

func (m Model) updated(msg readMsg) (tea.Model, tea.Cmd) {
	m.isAhead = false
	m.ticks++
	m.failure = msg.err
	if msg.err == nil {
		m.snapshot = Compare(m.latest, msg.reading)
		m.latest = &msg.reading
	}
	return m, m.readLater()
}

// refresh reads now instead of when it is due.
func (m Model) refresh() (tea.Model, tea.Cmd) {
	if m.isAhead {
		return m, nil
	}
	m.isAhead = true
	m.ticks++
	return m, m.readNow()
}

// reason is the text of an error for a person: the broker's own words where there are some.
func reason(err error) string {
	if broker, ok := errors.AsType[*parley.Error](err); ok {
		return broker.Error()
	}
	return err.Error()
}
