package top

import (
	"slices"

	tea "charm.land/bubbletea/v2"
)

// pressed does what a key stands for: in the answer to a question, in the filter, or on the screen.
func (m Model) pressed(key tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	if key.String() == "ctrl+c" {
		return m, tea.Quit
	}
	switch {
	case m.asked != nil:
		return m.answered(key)
	case m.isTyping:
		return m.typed(key), nil
	}
	m.notice = ""
	switch key.String() {
	case "q":
		return m, tea.Quit
	case "space":
		return m.refresh()
	case "p":
		return m.ask(), nil
	default:
		return m.moved(key.String()), nil
	}
}

// moved changes what is shown, and how.
func (m Model) moved(key string) Model {
	switch key {
	case "1", "2", "3", "4", "5":
		m.screen = screen(key[0] - '1')
	case "tab", "right", "l":
		m.screen = (m.screen + 1) % screenCount
	case "shift+tab", "left", "h":
		m.screen = (m.screen + screenCount - 1) % screenCount
	case "s":
		by := &m.sortings[m.screen]
		by.column = (by.column + 1) % len(tableOf(m.screen, m.snapshot).columns)
		by.reversed = false
	case "r":
		m.sortings[m.screen].reversed = !m.sortings[m.screen].reversed
	case "/":
		m.isTyping = true
	case "esc":
		m.filter = ""
	case "up", "k":
		m.choose(-1)
	case "down", "j":
		m.choose(1)
	case "pgup":
		m.choose(-m.room())
	case "pgdown":
		m.choose(m.room())
	case "home", "g":
		m.choose(-len(m.table().lines))
	case "end", "G":
		m.choose(len(m.table().lines))
	}
	return m
}

// table is the table that is shown, sorted and filtered.
func (m Model) table() table {
	t := tableOf(m.screen, m.snapshot)
	t.filter(m.filter)
	t.sort(m.sortings[m.screen])
	return t
}

// position reports which line of the table is selected: the first when the one that was is gone.
func (m Model) position(lines []line) int {
	return max(0, slices.IndexFunc(lines, func(l line) bool { return l.key == m.selected[m.screen] }))
}

// choose moves the selection by so many lines.
func (m *Model) choose(by int) {
	lines := m.table().lines
	if len(lines) > 0 {
		m.selected[m.screen] = lines[max(0, min(len(lines)-1, m.position(lines)+by))].key
	}
}

// ask asks whether the readers of the selected queue are to be paused, or to go on.
func (m Model) ask() Model {
	lines := m.table().lines
	if m.screen != queueScreen || len(lines) == 0 {
		m.notice = "p pauses or resumes a queue: select one among the queues"
		return m
	}
	name := lines[m.position(lines)].key
	i := slices.IndexFunc(m.snapshot.Queues, func(q Queue) bool { return q.Queue == name })
	m.asked = &question{queue: name, resumes: m.snapshot.Queues[i].ReadersPausedAt != nil}
	return m
}

// answered pauses or resumes when the answer is y. Any other key lets it be.
func (m Model) answered(key tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	asked := *m.asked
	m.asked = nil
	if key.String() != "y" && key.String() != "Y" {
		m.notice = "nothing changed"
		return m, nil
	}
	change := m.change
	return m, func() tea.Msg { return changedMsg{asked, change(asked.queue, asked.resumes)} }
}

// typed takes a key into the filter.
func (m Model) typed(key tea.KeyPressMsg) Model {
	switch key.String() {
	case "enter":
		m.isTyping = false
	case "esc":
		m.isTyping, m.filter = false, ""
	case "backspace":
		if runes := []rune(m.filter); len(runes) > 0 {
			m.filter = string(runes[:len(runes)-1])
		}
	default:
		m.filter += clean(key.Text)
	}
	return m
}
