package demo

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/machine"
)

// someOrders are orders of one customer by HTTP, one that was rolled back, and all that arrived of them.
func someOrders() (placed []order, arrivals map[string][]flowArrival) {
	arrivals = map[string][]flowArrival{}
	for n := range 8 {
		text := orderText{
			Number: fmt.Sprint("http-", n+1), Customer: "ann", Region: regions[n%len(regions)], Amount: fmt.Sprint(n*200, ".00"), Note: "x & y",
		}
		placed = append(placed, order{orderText: text, way: wayHTTP, sequence: n + 1})
		for _, port := range flowPorts {
			if text.goesTo(port) {
				arrivals[port] = append(arrivals[port], flowArrival{text, fmt.Sprint("shop:", n+1)})
			}
		}
	}
	return append(placed, order{orderText: orderText{Number: "row-1"}, way: wayTable, isRolledBack: true}), arrivals
}

func TestTheLedgerOfOrdersFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	swap := func(arrivals []flowArrival) { arrivals[0], arrivals[1] = arrivals[1], arrivals[0] }
	for what, test := range map[string]struct {
		breaks func(map[string][]flowArrival)
		want   FlowFindings
	}{
		"nothing": {func(map[string][]flowArrival) {}, FlowFindings{}},
		"an order that is not at a port": {
			func(a map[string][]flowArrival) { a[portApprovals] = a[portApprovals][1:] }, FlowFindings{Lost: 1},
		},
		"an order twice in a table": {
			func(a map[string][]flowArrival) { a[portApprovals] = append(a[portApprovals], a[portApprovals][0]) }, FlowFindings{Duplicated: 1},
		},
		"an order twice at a service": {
			func(a map[string][]flowArrival) { a[portBilling] = append(a[portBilling], a[portBilling][0]) }, FlowFindings{Duplicated: 1},
		},
		"an order twice in the folder": {
			func(a map[string][]flowArrival) {
				a[portArchive] = append(a[portArchive], flowArrival{a[portArchive][0].orderText, "other.xml"})
			}, FlowFindings{Duplicated: 1},
		},
		"an order again over TCP, with another key": {
			func(a map[string][]flowArrival) {
				a[portWarehouse] = append(a[portWarehouse], flowArrival{a[portWarehouse][0].orderText, "shop:99"})
			}, FlowFindings{Duplicated: 1},
		},
		"an order again over TCP, with its key": {
			func(a map[string][]flowArrival) { a[portWarehouse] = append(a[portWarehouse], a[portWarehouse][0]) },
			FlowFindings{Repeated: map[string]int64{portWarehouse: 1}},
		},
		"another order than that of the customer": {
			func(a map[string][]flowArrival) { swap(a[portBilling]) }, FlowFindings{OutOfOrder: 1},
		},
		"another order of files, which nobody promises": {
			func(a map[string][]flowArrival) { swap(a[portArchive]) }, FlowFindings{},
		},
		"another note": {
			func(a map[string][]flowArrival) { a[portBilling][0].Note = "x &amp; y" }, FlowFindings{Changed: 1},
		},
		"an order of the west in the folder of the north": {
			func(a map[string][]flowArrival) { a[portArchive] = append(a[portArchive], a[portBilling][3]) }, FlowFindings{Misrouted: 1},
		},
		"an order that nobody placed": {
			func(a map[string][]flowArrival) {
				a[portBilling] = append(a[portBilling], flowArrival{orderText{Number: "http-0"}, ""})
			}, FlowFindings{NeverSent: 1},
		},
		"an order that was rolled back": {
			func(a map[string][]flowArrival) {
				a[portBilling] = append(a[portBilling], flowArrival{orderText{Number: "row-1"}, ""})
			}, FlowFindings{NeverSent: 1},
		},
	} {
		placed, arrivals := someOrders()
		test.breaks(arrivals)
		got := judgeFlow(placed, arrivals)
		if got.Orders != 8 {
			t.Errorf("%s: %d orders", what, got.Orders)
		}
		test.want.Orders = got.Orders
		if shown(got) != shown(test.want) {
			t.Errorf("%s: found %s, want %s", what, shown(got), shown(test.want))
		}
		if isWrong := shown(FlowFindings{Orders: 8, Repeated: got.Repeated}) != shown(got); isWrong != (len(got.Examples) > 0) {
			t.Errorf("%s: the examples are %q", what, got.Examples)
		}
	}
}

// shown writes the counts of findings.
func shown(f FlowFindings) string {
	return fmt.Sprintf("%d orders, %d repeated, %d lost, %d duplicated, %d misrouted, %d out of order, %d changed, %d never sent",
		f.Orders, total(f.Repeated), f.Lost, f.Duplicated, f.Misrouted, f.OutOfOrder, f.Changed, f.NeverSent)
}

func TestAFlowResultPassesOnlyWhenAllHappenedAndNothingIsLeft(t *testing.T) {
	t.Parallel()
	if result := goodFlow(); len(result.wrongs()) > 0 {
		t.Fatal(result.Verdict())
	}
	for want, breaks := range map[string]func(*FlowResult){
		"1 lost":                         func(r *FlowResult) { r.Lost = 1 },
		"1 doubled":                      func(r *FlowResult) { r.Duplicated = 1 },
		"1 arrived where they had not":   func(r *FlowResult) { r.Misrouted = 1 },
		"1 out of order":                 func(r *FlowResult) { r.OutOfOrder = 1 },
		"1 changed":                      func(r *FlowResult) { r.Changed = 1 },
		"1 arrived though never sent":    func(r *FlowResult) { r.NeverSent = 1 },
		"1 left behind":                  func(r *FlowResult) { r.LeftBehind.Suspended = 1 },
		"no node was killed":             func(r *FlowResult) { r.NodesKilled = 0 },
		"no bad record":                  func(r *FlowResult) { r.Mended = 0 },
		"nothing came by " + wayTable:    func(r *FlowResult) { r.Taken[wayTable] = 0 },
		"1 of partners without an end":   func(r *FlowResult) { r.Unfinished = 1 },
		"1 of partners ended twice":      func(r *FlowResult) { r.EndedTwice = 1 },
		"1 of partners ended otherwise":  func(r *FlowResult) { r.Contradicted = 1 },
		"no order of a partner was conf": func(r *FlowResult) { r.Confirmed = 0 },
		"no order of a partner":          func(r *FlowResult) { r.TakenBack = 0 },
		"a port got nothing":             func(r *FlowResult) { r.Arrived[portArchive] = 0 },
		"1 lost, 1 doubled, 1 out of or": func(r *FlowResult) { r.Lost, r.Duplicated, r.OutOfOrder = 1, 1, 1 },
	} {
		result := goodFlow()
		breaks(&result)
		if verdict := result.Verdict(); !strings.HasPrefix(verdict, "Failed: "+want) {
			t.Errorf("the verdict is %q, want %q", verdict, want)
		}
	}
}

// goodFlow is the result of a run in which all went well.
func goodFlow() FlowResult {
	r := FlowResult{
		Passed: true, NodesKilled: 1, Settings: FlowSettings{Sessions: 4, DurationSeconds: 16},
		Machine:      machine.Machine{CPU: "A CPU " + hostile, Cores: 8, MemoryBytes: 16 << 30, OS: "An OS", PostgresVersion: "18.1"},
		Server:       map[string]string{"fsync": "on"},
		StartedAt:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		FlowFindings: FlowFindings{Orders: 4210, Arrived: map[string]int64{}, Repeated: map[string]int64{portWarehouse: 3}, Examples: []string{}},
		marks:        []mailMark{{4, "warehouse away"}, {8, "warehouse back"}, {12, "node killed"}, {14, "started again"}},
	}
	for i := range 60 {
		r.samples = append(r.samples, OrdersSample{
			Seconds: float64(i) / 4, Taken: map[string]int64{wayHTTP: int64(50 * i)}, Delivered: map[string]int64{portWarehouse: int64(25 * i)},
		})
	}
	r.OrdersSample = OrdersSample{Seconds: 15, Taken: map[string]int64{}, Delivered: map[string]int64{}, Mended: 12, RolledBack: 90}
	for i, way := range flowWays {
		r.Taken[way] = int64(1000 * (i + 1))
	}
	for i, port := range flowPorts {
		r.Arrived[port] = int64(900 * (i + 1))
	}
	r.Confirmed, r.TakenBack, r.Mailed = 4000, 1000, 5000
	return r
}

func TestThePageOfFlowInABrowser(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	var page bytes.Buffer
	result := goodFlow()
	if err := result.WritePage(&page); err != nil {
		t.Fatal(err)
	}
	show(t, b, page.Bytes())
	checkClaims(t, b, []claim{
		{"all stations are drawn", `document.querySelectorAll("svg.broad .station").length == 14`},
		{"the box is in the middle", `(m => Math.abs(m.left + m.right - document.querySelector("svg.broad").getBoundingClientRect().left * 2 - ` +
			`document.querySelector("svg.broad").getBoundingClientRect().width) < 4)(document.querySelector("svg.broad .middle").getBoundingClientRect())`},
		{"a station has its count", `[...document.querySelectorAll("svg.broad .station")].some(s => s.textContent == "Warehouse3,600")`},
		{
			"an end of orders of partners has its count",
			`[...document.querySelectorAll("svg.broad .station")].some(s => s.textContent == "Taken back1,000")`,
		},
		{"lines lead in and out", `document.querySelectorAll("svg.broad .way").length == 12`},
		{"no text became an element", `document.querySelectorAll("img,script").length == 0`},
		{"the verdict is good", `document.querySelectorAll(".verdict:not(.bad)").length == 1`},
	})
	checkColours(t, b)
	checkLayout(t, b, "flow")
}

func TestAFlowResultAsJSONHasTheDocumentedFields(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(goodFlow())
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"passed", "orders", "arrived", "repeated", "lost", "duplicated", "misrouted", "out_of_order", "changed", "never_sent", "examples",
		"confirmed", "taken_back", "mailed", "unfinished", "ended_twice", "contradicted", "ended", "late_answers",
		"seconds", "taken", "rolled_back", "delivered", "mended", "repeated_requests", "nodes_killed", "left_behind", "settings", "machine",
		"server_settings", "started_at", "html",
	} {
		if _, ok := object[name]; !ok {
			t.Errorf("%q is missing", name)
		}
		delete(object, name)
	}
	for name := range object {
		t.Errorf("%q is not documented", name)
	}
}

func TestTheWarehouseTakesKeepsAndLeaves(t *testing.T) {
	t.Parallel()
	var w warehouse
	address, err := w.serve(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	text := orderText{Number: "http-1", Customer: "ann", Region: "south", Amount: "1.00", Note: "<&äö"}
	send := func() (answer []byte, err error) {
		conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", address)
		if err != nil {
			return nil, err
		}
		defer func() { _ = conn.Close() }()
		frame := binary.BigEndian.AppendUint64([]byte{keyedRequest}, 7)
		frame = append(append(frame, 0, 2), "k1"+text.xml()...)
		if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)); err != nil {
			return nil, err
		}
		answer = make([]byte, frameLengthBytes+answerBytes)
		_, err = io.ReadFull(conn, answer)
		return answer, err
	}
	answer, err := send()
	if err != nil || !bytes.Equal(answer, []byte{0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0}) {
		t.Fatalf("the answer is %v (%v)", answer, err)
	}
	w.leave()
	if _, err := send(); err == nil {
		t.Error("it is away, and took a request")
	}
	if _, err := w.serve(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	defer w.leave()
	if _, err := send(); err != nil {
		t.Fatal(err)
	}
	want := flowArrival{text, "k1"}
	if len(w.arrivals) != 2 || w.arrivals[0] != want || w.arrivals[1] != want || w.err != nil {
		t.Errorf("it has %+v (%v)", w.arrivals, w.err)
	}
}

// A node that is killed while it writes a file leaves its temporary file, and another node writes the message into a file of its own.
func TestAFileThatIsBeingWrittenHasNotArrived(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"7.xml", ".parley-out-7.xml"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("<Order/>"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := archived(folder); err != nil || fmt.Sprint(files) != "[7.xml]" {
		t.Errorf("the archive has %v, %v", files, err)
	}
}
