package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/operate"
)

// diagnosisAge is for how long the findings of a session serve its overview, which refreshes itself, and overviewBudget how long each
// of their two statements may take there: the rest of the overview is shown without them.
const (
	diagnosisAge   = 30 * time.Second
	overviewBudget = readBudget / 4
)

// tooLongToFind stands in the place of findings that take too long.
const tooLongToFind = "It takes too long to find out now; the page of the diagnosis has more time for it."

// findingsPage is the page of what is wrong.
type findingsPage struct {
	Findings       []operate.Finding
	MayNotDiagnose string
}

func (c *Console) showDiagnosis(w http.ResponseWriter, request *http.Request, s *session) error {
	var shown findingsPage
	err := s.read(request.Context(), func(ctx context.Context, tx pgx.Tx) (err error) {
		shown.Findings, shown.MayNotDiagnose, err = diagnose(ctx, tx, readBudget/2)
		if pgdb.TookTooLong(err) && ctx.Err() == nil {
			shown.MayNotDiagnose, err = "It takes too long to find out here. parley diagnose has no such limit.", nil
		}
		return err
	})
	if err != nil {
		return err
	}
	c.pages.render(w, http.StatusOK, "diagnosis", c.frame(s, request, "Diagnosis"), shown)
	return nil
}

// recentFindings gives what is wrong as it was a moment ago.
func (s *session) recentFindings(ctx context.Context, tx pgx.Tx) (findings []operate.Finding, mayNot string, err error) {
	s.mu.Lock()
	kept := s.diagnosed
	s.mu.Unlock()
	if time.Since(kept.at) < diagnosisAge {
		return kept.findings, kept.mayNot, nil
	}
	kept.findings, kept.mayNot, err = diagnose(ctx, tx, overviewBudget)
	if pgdb.TookTooLong(err) && ctx.Err() == nil {
		kept.mayNot, err = tooLongToFind, nil
	}
	if err != nil {
		return nil, "", err
	}
	kept.at = time.Now()
	s.mu.Lock()
	s.diagnosed = kept
	s.mu.Unlock()
	return kept.findings, kept.mayNot, nil
}

// diagnosis is a list of findings, and when it was made.
type diagnosis struct {
	at       time.Time
	findings []operate.Finding
	mayNot   string
}

// diagnose gives what is wrong, or why the role may not know: that is no error of a page that shows more. Each of its two statements ends
// within the budget.
func diagnose(ctx context.Context, tx pgx.Tx, budget time.Duration) (findings []operate.Finding, mayNot string, err error) {
	err = withinBudget(ctx, tx, budget, func(part pgx.Tx) error {
		configuration, err := operate.DiagnoseConfiguration(ctx, part, "", "", "", operate.DiagnosisFilter{})
		if err != nil {
			return err
		}
		runtime, err := operate.DiagnoseRuntime(ctx, part, nil, nil, operate.DiagnosisFilter{})
		findings = slices.Concat(configuration, runtime)
		return err
	})
	if err != nil && ctx.Err() == nil {
		status, shown := describe(err)
		if status < http.StatusInternalServerError {
			return nil, shown.Text, nil
		}
	}
	return findings, "", err
}
