package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/machine"
	"github.com/parley-broker/parley/internal/verify/mailcheck"
)

// MailResult is the result of a run of the demo of mail. As JSON it is a stable format; docs/reference/json.md describes it.
type MailResult struct {
	// Passed reports whether the judge found nothing wrong, the relay was away, a daemon was killed, and nothing was left behind.
	Passed bool `json:"passed"`
	mailcheck.Findings
	MailSample
	DaemonsKilled int               `json:"daemons_killed"`
	LeftBehind    MailLeftovers     `json:"left_behind"`
	Settings      MailSettings      `json:"settings"`
	Machine       machine.Machine   `json:"machine"`
	Server        map[string]string `json:"server_settings"`
	StartedAt     time.Time         `json:"started_at"`
	// HTML is the path of the result page, or empty.
	HTML string `json:"html"`

	// Fields that only the page shows.
	samples []MailSample
	marks   []mailMark
}

// MailSettings are the settings of the run.
type MailSettings struct {
	Sessions        int     `json:"sessions"`
	DurationSeconds float64 `json:"duration_seconds"`
}

// MailLeftovers are the messages that mail transport still holds.
type MailLeftovers struct {
	Messages   int64 `json:"messages"`
	Recipients int64 `json:"recipients"`
	Work       int64 `json:"work"`
	Reports    int64 `json:"reports"`
	Answers    int64 `json:"answers"`
}

func (l MailLeftovers) total() int64 {
	return l.Messages + l.Recipients + l.Work + l.Reports + l.Answers
}

// left counts what is under way.
func (r *mailRun) left(ctx context.Context) (l MailLeftovers, err error) {
	err = r.control.QueryRow(ctx, `
		select
			(select count(*) from parley_mail._p_message), (select count(*) from parley_mail._p_recipient),
			(select count(*) from parley_store.work_items), (select count(*) from parley_mail._p_report),
			(select count(*) from parley_queue.answers)`,
	).Scan(&l.Messages, &l.Recipients, &l.Work, &l.Reports, &l.Answers)
	if err != nil {
		return l, fmt.Errorf("count what is under way: %w", err)
	}
	return l, nil
}

// conclude judges, and puts the result together.
func (r *mailRun) conclude(ctx context.Context) (result MailResult, err error) {
	r.notice("Checking every letter.")
	result = MailResult{
		MailSample: r.sample(), DaemonsKilled: len(r.faults.Killed), StartedAt: r.began, samples: r.samples, marks: r.marks,
		Settings: MailSettings{Sessions: r.config.Sessions, DurationSeconds: r.config.Duration.Seconds()},
	}
	// The log of the relay is whole when its connections have ended.
	if err := r.relay.Close(); err != nil {
		return result, fmt.Errorf("close the relay: %w", err)
	}
	arrivals := r.relay.Arrivals()
	rows, err := r.control.Query(ctx, "select raw from answers")
	if err != nil {
		return result, fmt.Errorf("read the answers: %w", err)
	}
	messages, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return result, fmt.Errorf("read the answers: %w", err)
	}
	for _, message := range messages {
		key, hash, report, err := mailcheck.Read(message)
		if err != nil {
			return result, fmt.Errorf("read an answer: %w", err)
		}
		arrivals = append(arrivals, mailcheck.Arrival{
			Key: key, Recipient: "shop@shop.example", Hash: hash, Report: report, Place: "the service", Ending: mailcheck.Stored,
		})
	}
	result.Findings = mailcheck.Judge(r.submissions, arrivals, r.faults)
	if result.LeftBehind, err = r.left(ctx); err != nil {
		return result, err
	}
	if result.Machine, err = machine.Read(ctx, r.control); err != nil {
		return result, err
	}
	if result.Server, err = machine.Settings(ctx, r.control, serverSettings...); err != nil {
		return result, err
	}
	result.Passed = len(result.wrongs()) == 0
	return result, nil
}

// wrongs lists what must not be.
func (r *MailResult) wrongs() (wrong []string) {
	for _, w := range []struct {
		count int
		text  string
	}{
		{r.Lost, "lost"},
		{r.NeverSent, "arrived though never sent"},
		{r.Duplicated, "doubled without a connection or a daemon that died"},
		{r.Changed, "changed"},
		{r.Contradicts, "reported as failed though they arrived"},
		{int(r.LeftBehind.total()), "left behind"},
	} {
		if w.count > 0 {
			wrong = append(wrong, fmt.Sprintf("%s %s", thousands(int64(w.count)), w.text))
		}
	}
	if r.DaemonsKilled != 1 {
		wrong = append(wrong, "no daemon was killed")
	}
	if r.Arrived == 0 {
		wrong = append(wrong, "nothing arrived")
	}
	return wrong
}

// repeats is how many letters came twice because nobody could know, or had recorded, what a host replied.
func (r *MailResult) repeats() int { return r.Uncertain + r.Unrecorded }

// Verdict states in a sentence how the demo ended.
func (r *MailResult) Verdict() string {
	if wrong := r.wrongs(); len(wrong) > 0 {
		return "Failed: " + strings.Join(wrong, ", ") + "."
	}
	text := fmt.Sprintf("All %s letters arrived unchanged, none of the %s that were rolled back did, though the relay was away for a while "+
		"and a daemon was killed.", thousands(int64(r.Arrived)), thousands(r.RolledBack))
	if repeats := r.repeats(); repeats > 0 {
		text += fmt.Sprintf(" %s came twice, because the connection or the daemon died between the end of a letter and the record of its "+
			"reply.", thousands(int64(repeats)))
	}
	return text
}

// Command is the command line that plays the same run.
func (r *MailResult) Command() string {
	return fmt.Sprintf("go run ./cmd/parley demo mail --sessions %d --duration %gs", r.Settings.Sessions, r.Settings.DurationSeconds)
}
