package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/operate"
)

// diagnosisAge is for how long the findings of a session serve its overview, which refreshes itself.
const diagnosisAge = 30 * time.Second

// findingsPage is the page of what is wrong.
type findingsPage struct {
	Findings       []operate.Finding
	MayNotDiagnose string
}

func (c *Console) showDiagnosis(w http.ResponseWriter, request *http.Request, s *session) error {
	var shown findingsPage
	err := s.read(request.Context(), func(ctx context.Context, tx pgx.Tx) (err error) {
		shown.Findings, shown.MayNotDiagnose, err = diagnose(ctx, tx)
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
	kept.findings, kept.mayNot, err = diagnose(ctx, tx)
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

// diagnose gives what is wrong, or why the role may not know: that is no error of a page that shows more.
func diagnose(ctx context.Context, tx pgx.Tx) (findings []operate.Finding, mayNot string, err error) {
	err = pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error {
		configuration, err := operate.DiagnoseConfiguration(ctx, part, "", "", "", operate.DiagnosisFilter{})
		if err != nil {
			return err
		}
		runtime, err := operate.DiagnoseRuntime(ctx, part, nil, nil, operate.DiagnosisFilter{})
		if err != nil {
			return err
		}
		findings = slices.Concat(configuration, runtime)
		return nil
	})
	if err != nil && ctx.Err() == nil {
		status, shown := describe(err)
		if status < http.StatusInternalServerError {
			return nil, shown.Text, nil
		}
	}
	return findings, "", err
}
