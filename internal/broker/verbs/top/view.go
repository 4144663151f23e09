package top

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// Styles of the parts of the screen, as far as the terminal can show them.
var (
	bold     = lipgloss.NewStyle().Bold(true)
	reversed = lipgloss.NewStyle().Reverse(true)
	alarming = lipgloss.NewStyle().Foreground(lipgloss.Color("1"))
	faint    = lipgloss.NewStyle().Faint(true)
)

const help = "1-5 tab screen  ↑↓ select  s r sort  / filter  p pause/resume  space poll  q quit"

// around is how many lines of the screen are not lines of the table.
const around = 5

// room is how many lines of the table the screen has room for.
func (m Model) room() int { return max(1, m.height-around) }

// View draws the screen.
func (m Model) View() tea.View {
	view := tea.NewView(m.draw())
	view.AltScreen = true
	return view
}

func (m Model) draw() string {
	t := m.table()
	by := m.sortings[m.screen]
	widths := t.layout(m.width, by)
	lines := []string{
		bold.Render(cut(m.headline(), m.width)),
		cut(m.tabs(len(t.lines)), m.width),
		"",
		bold.Render(t.format(widths, func(i int) string { return t.heading(i, by) }, m.width)),
	}
	selected := m.position(t.lines)
	first := max(0, min(selected-m.room()/2, len(t.lines)-m.room()))
	for i := first; i < len(t.lines) && i < first+m.room(); i++ {
		text := t.format(widths, func(column int) string { return t.lines[i].cells[column].text }, m.width)
		switch {
		case i == selected:
			text = reversed.Render(text)
		case t.lines[i].alarm:
			text = alarming.Render(text)
		}
		lines = append(lines, text)
	}
	for len(lines) < around-1+m.room() {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, m.footer()), "\n")
}

// headline adds up what goes on in all queues.
func (m Model) headline() string {
	if m.latest == nil {
		return "parley top"
	}
	var waiting int64
	var in, out float64
	isEstimated := false
	for _, q := range m.snapshot.Queues {
		waiting += q.WaitingMessages + q.HeldMessages
		isEstimated = isEstimated || q.IsEstimated
		in += orZero(q.InPerSecond)
		out += orZero(q.OutPerSecond)
	}
	return fmt.Sprintf("parley top  %s  %s  %s messages in %d queues  in %s/s  out %s/s",
		clean(m.latest.Database), m.latest.At.Local().Format("15:04:05"),
		count(waiting, isEstimated), len(m.snapshot.Queues), rate(&in), rate(&out))
}

// tabs names the screens, the one that is shown in brackets, and the filter.
func (m Model) tabs(lines int) string {
	var texts []string
	for s, name := range screenNames {
		text := fmt.Sprintf("%d %s", s+1, name)
		if screen(s) == m.screen {
			text = "[" + text + "]"
		}
		texts = append(texts, text)
	}
	text := strings.Join(texts, gap)
	switch {
	case m.isTyping:
		text += gap + "filter: " + m.filter + "_"
	case m.filter != "":
		text += gap + fmt.Sprintf("filter: %s (%d)", m.filter, lines)
	}
	return text
}

// footer is the last line: a question, a message, or the keys.
func (m Model) footer() string {
	switch {
	case m.asked != nil && m.asked.resumes:
		return bold.Render(cut(fmt.Sprintf("Let the readers of queue %s go on? y/n", clean(m.asked.queue)), m.width))
	case m.asked != nil:
		text := fmt.Sprintf("Pause the readers of queue %s? Senders go on, and messages wait there. y/n", clean(m.asked.queue))
		if lipgloss.Width(text) > m.width {
			text = fmt.Sprintf("Pause the readers of queue %s? y/n", clean(m.asked.queue))
		}
		return bold.Render(cut(text, m.width))
	case m.failure != nil:
		return alarming.Render(cut("trying again: "+clean(reason(m.failure)), m.width))
	case m.notice != "":
		return cut(clean(m.notice), m.width)
	}
	return faint.Render(cut(help, m.width))
}
