package demo

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/backoff"
)

// wayPartner is the location of the orders of partners, which a map makes orders of the shop, and about which an orchestration asks.
const wayPartner = "Partner files"

// How an order of a partner ends.
const (
	stateConfirmed = "confirmed"
	stateTakenBack = "taken back"
)

// flowBackEnds are those that the orchestration asks about each order of a partner.
var flowBackEnds = []string{"stock", "credit"}

const (
	// partnerInterval is the time between two orders of partners; every so many of them the credit never answers.
	partnerInterval, partnerQuiet = 100 * time.Millisecond, 5
	// quietSuffix ends the numbers of the orders about which the credit is silent.
	quietSuffix = "quiet"
)

// partnerJSON writes an order as partners do.
func (o orderText) partnerJSON() (string, error) {
	text, err := json.Marshal(map[string]any{
		"id": o.Number, "buyer": o.Customer, "delivery": map[string]string{"region": o.Region}, "total": o.Amount, "remark": o.Note,
	})
	if err != nil {
		return "", fmt.Errorf("write an order of a partner: %w", err)
	}
	return string(text), nil
}

// isQuiet reports whether the credit never answers about an order.
func (o orderText) isQuiet() bool { return strings.HasSuffix(o.Number, quietSuffix) }

// writePartnerFiles writes files of one order in JSON.
func (r *flowRun) writePartnerFiles(ctx context.Context, stop <-chan struct{}) error {
	random := rand.New(rand.NewPCG(7, 0))
	for n := 1; goesOn(ctx, random, stop); n++ {
		number := fmt.Sprintf("partner-%d", n)
		if n%partnerQuiet == 0 {
			number += "-" + quietSuffix
		}
		o := order{orderText: newOrderText(random, number, fmt.Sprintf("dealer %d", n%5)), way: wayPartner}
		text, err := o.partnerJSON()
		if err != nil {
			return err
		}
		r.place(o)
		if err := r.writeFile(fmt.Sprintf("order-%06d.json", n), text); err != nil {
			return err
		}
		r.taken[wayPartner].Add(1)
		_ = backoff.Wait(ctx, partnerInterval)
	}
	return nil
}

// answerAs gives the work of a back end, which answers one question after the other.
func answerAs(backEnd string) func(context.Context, *pgx.Conn) (int64, error) {
	return func(ctx context.Context, conn *pgx.Conn) (answered int64, err error) {
		if err := conn.QueryRow(ctx, "select shop.answer($1)", backEnd).Scan(&answered); err != nil {
			return 0, fmt.Errorf("answer as the back end %s: %w", backEnd, err)
		}
		return answered, nil
	}
}

// dropLate is the operator, who drops answers that came while their order was being taken back.
func (r *flowRun) dropLate(ctx context.Context, conn *pgx.Conn) (dropped int64, err error) {
	err = conn.QueryRow(ctx, `select parley_flow.terminate_suspended('{"code": "process.unread"}')`).Scan(&dropped)
	if err != nil {
		return 0, fmt.Errorf("drop late answers: %w", err)
	}
	r.late.Add(dropped)
	return dropped, nil
}

// PartnerFindings are the results of the check of the orders of partners, each of which has to end once.
type PartnerFindings struct {
	Confirmed int64 `json:"confirmed"`
	TakenBack int64 `json:"taken_back"`
	// Mailed have exactly one mail in the mail transport that says how they ended.
	Mailed int64 `json:"mailed"`
	// Unfinished have no outcome in the table, in the folder or in the mail; EndedTwice have several in one of them.
	Unfinished int64 `json:"unfinished"`
	EndedTwice int64 `json:"ended_twice"`
	// Contradicted ended otherwise than the file, the mail, or what the back ends hold, says.
	Contradicted int64 `json:"contradicted"`
}

// partnerOutcome is how an order has ended, as a row, a file or a mail says.
type partnerOutcome struct {
	Number string `xml:"Number"`
	State  string `xml:"State"`
}

// partnerLedger has how orders ended, and what each back end holds in the end.
type partnerLedger struct {
	rows, files, mails, held []partnerOutcome // held: the back end is the state
}

// mailedOutcomes reads the mails that the port "Outcome mails" has submitted. Number and state stand in the subject; a mail that has gone
// elsewhere, or that was not submitted in full, is an outcome of no order.
const mailedOutcomes = `
	select
		coalesce(substring(m.subject from '^Order (\S+) was '), m.subject, 'without a subject'),
		case
			when m.recipients = array['orders@partner.example'] and m.sender = 'orders@shop.example'
			then coalesce(substring(m.subject from ' was (.*)$'), '')
			else 'a mail to ' || m.recipients::text
		end
	from parley_mail.messages as m
	order by m.message_id`

// partners reads how the orders of partners ended.
func (r *flowRun) partners(ctx context.Context) (l partnerLedger, err error) {
	for _, read := range []struct {
		query string
		into  *[]partnerOutcome
	}{
		{"select number, state from shop.outcomes order by arrival", &l.rows},
		{"select number, back_end from shop.held", &l.held},
		{mailedOutcomes, &l.mails},
	} {
		rows, err := r.control.Query(ctx, read.query)
		if err != nil {
			return l, fmt.Errorf("read how orders ended: %w", err)
		}
		if *read.into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[partnerOutcome]); err != nil {
			return l, fmt.Errorf("read how orders ended: %w", err)
		}
	}
	files, err := archived(r.path("outcomes"))
	if err != nil {
		return l, err
	}
	for _, file := range files {
		text, err := os.ReadFile(r.path("outcomes", file))
		if err != nil {
			return l, fmt.Errorf("read an outcome: %w", err)
		}
		var outcome partnerOutcome
		if err := xml.Unmarshal(text, &outcome); err != nil {
			return l, fmt.Errorf("read the outcome %s: %w", file, err)
		}
		l.files = append(l.files, outcome)
	}
	return l, nil
}

// judgePartners holds how the orders of partners ended against what was placed, and what the back ends hold against both.
func (f *FlowFindings) judgePartners(placed []order, l partnerLedger) {
	by := func(outcomes []partnerOutcome) map[string][]string {
		states := map[string][]string{}
		for _, o := range outcomes {
			states[o.Number] = append(states[o.Number], o.State)
		}
		return states
	}
	rows, files, mails, held := by(l.rows), by(l.files), by(l.mails), by(l.held)
	for _, o := range placed {
		if o.way != wayPartner {
			continue
		}
		inTable, inFolder, inMail, holders := rows[o.Number], files[o.Number], mails[o.Number], held[o.Number]
		for _, states := range []map[string][]string{rows, files, mails, held} {
			delete(states, o.Number)
		}
		if len(inMail) == 1 {
			f.Mailed++
		}
		if min(len(inTable), len(inFolder), len(inMail)) == 0 {
			f.found(&f.Unfinished, "order %s has %d outcomes in the table, %d in the folder and %d in the mail",
				o.Number, len(inTable), len(inFolder), len(inMail))
			continue
		}
		if max(len(inTable), len(inFolder), len(inMail)) > 1 {
			f.found(&f.EndedTwice, "order %s ended as %q in the table, as %q in the folder and as %q in the mail",
				o.Number, inTable, inFolder, inMail)
			continue
		}
		state, holding := inTable[0], 0
		switch {
		case state == stateConfirmed && !o.isQuiet():
			f.Confirmed++
			holding = len(flowBackEnds)
		case state == stateTakenBack:
			f.TakenBack++
		default:
			f.found(&f.Contradicted, "order %s ended as %q", o.Number, state)
			continue
		}
		if inFolder[0] != state || inMail[0] != state || len(holders) != holding {
			f.found(&f.Contradicted, "order %s was %s; its file says %s, its mail %s, and it is held by %q",
				o.Number, state, inFolder[0], inMail[0], holders)
		}
	}
	for _, states := range []map[string][]string{rows, files, mails, held} {
		for number, state := range states {
			f.found(&f.NeverSent, "order %s has the outcome or the holder %q, and was never sent by a partner", number, state)
		}
	}
}
