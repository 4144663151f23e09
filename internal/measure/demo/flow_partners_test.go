package demo

import (
	"encoding/json"
	"fmt"
	"testing"
)

func TestTheLedgerOfPartnersFindsWhatContradicts(t *testing.T) {
	t.Parallel()
	const confirmed, quiet = "partner-1", "partner-2-quiet"
	for name, test := range map[string]struct {
		breaks func(*partnerLedger)
		want   FlowFindings
	}{
		"nothing": {func(*partnerLedger) {}, partnerCounts(1, 1, 0, 0, 0, 0)},
		"an order that is not in the table": {
			func(l *partnerLedger) { l.rows = l.rows[1:] }, partnerCounts(0, 1, 1, 0, 0, 0),
		},
		"an order without a file": {
			func(l *partnerLedger) { l.files = l.files[:1] }, partnerCounts(1, 0, 1, 0, 0, 0),
		},
		"an order without a mail": {
			func(l *partnerLedger) { l.mails = l.mails[1:] }, mailed(1, partnerCounts(0, 1, 1, 0, 0, 0)),
		},
		"an order with two mails": {
			func(l *partnerLedger) { l.mails = append(l.mails, l.mails[0]) }, mailed(1, partnerCounts(0, 1, 0, 1, 0, 0)),
		},
		"a mail that says otherwise": {
			func(l *partnerLedger) { l.mails[1].State = stateConfirmed }, partnerCounts(1, 1, 0, 0, 1, 0),
		},
		"a mail about an order that nobody placed": {
			func(l *partnerLedger) { l.mails = append(l.mails, partnerOutcome{"partner-9", stateConfirmed}) },
			partnerCounts(1, 1, 0, 0, 0, 1),
		},
		"an order that was confirmed and taken back": {
			func(l *partnerLedger) { l.rows = append(l.rows, partnerOutcome{confirmed, stateTakenBack}) }, partnerCounts(0, 1, 0, 1, 0, 0),
		},
		"an order with two files": {
			func(l *partnerLedger) { l.files = append(l.files, l.files[1]) }, partnerCounts(1, 0, 0, 1, 0, 0),
		},
		"a file that says otherwise": {
			func(l *partnerLedger) { l.files[0].State = stateTakenBack }, partnerCounts(1, 1, 0, 0, 1, 0),
		},
		"a confirmed order that one back end does not hold": {
			func(l *partnerLedger) { l.held = l.held[1:] }, partnerCounts(1, 1, 0, 0, 1, 0),
		},
		"an order that was taken back, and is held still": {
			func(l *partnerLedger) { l.held = append(l.held, partnerOutcome{quiet, "stock"}) }, partnerCounts(1, 1, 0, 0, 1, 0),
		},
		"an order that was confirmed though the credit was silent": {
			func(l *partnerLedger) { l.rows[1].State = stateConfirmed }, partnerCounts(1, 0, 0, 0, 1, 0),
		},
		"an outcome of an order that nobody placed": {
			func(l *partnerLedger) { l.rows = append(l.rows, partnerOutcome{"http-1", stateConfirmed}) }, partnerCounts(1, 1, 0, 0, 0, 1),
		},
	} {
		placed := []order{
			{orderText: orderText{Number: confirmed}, way: wayPartner},
			{orderText: orderText{Number: quiet}, way: wayPartner},
			{orderText: orderText{Number: "http-1"}, way: wayHTTP},
		}
		outcomes := func() []partnerOutcome { return []partnerOutcome{{confirmed, stateConfirmed}, {quiet, stateTakenBack}} }
		ledger := partnerLedger{
			rows: outcomes(), files: outcomes(), mails: outcomes(), held: []partnerOutcome{{confirmed, "stock"}, {confirmed, "credit"}},
		}
		test.breaks(&ledger)
		var got FlowFindings
		got.judgePartners(placed, ledger)
		if got.PartnerFindings != test.want.PartnerFindings || got.NeverSent != test.want.NeverSent {
			t.Errorf("%s: found %+v, %d never sent", name, got.PartnerFindings, got.NeverSent)
		}
		isWrong := got.Unfinished+got.EndedTwice+got.Contradicted+got.NeverSent > 0
		if isWrong != (len(got.Examples) > 0) {
			t.Errorf("%s: the examples are %q", name, got.Examples)
		}
	}
}

func partnerCounts(confirmed, takenBack, unfinished, endedTwice, contradicted, neverSent int64) FlowFindings {
	return FlowFindings{NeverSent: neverSent, PartnerFindings: PartnerFindings{
		Confirmed: confirmed, TakenBack: takenBack, Mailed: 2, Unfinished: unfinished, EndedTwice: endedTwice, Contradicted: contradicted,
	}}
}

func mailed(orders int64, f FlowFindings) FlowFindings {
	f.Mailed = orders
	return f
}

func TestAnOrderOfAPartnerHasItsValues(t *testing.T) {
	t.Parallel()
	text, err := orderText{Number: "partner-1", Customer: "dealer 1", Region: "north", Amount: "19.90", Note: `<&"ö€`}.partnerJSON()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		ID, Buyer, Total, Remark string
		Delivery                 struct{ Region string }
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprintf("%+v", got) != `{ID:partner-1 Buyer:dealer 1 Total:19.90 Remark:<&"ö€ Delivery:{Region:north}}` {
		t.Errorf("the order is %s", text)
	}
}
