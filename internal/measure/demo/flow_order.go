package demo

import (
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// The ways by which orders come in, and the ports to which they go: names of the definitions.
const (
	wayFlat  = "Flat files"
	wayXML   = "XML files"
	wayHTTP  = "HTTP"
	wayTable = "Table"

	portArchive   = "Archive"
	portApprovals = "Approvals"
	portBilling   = "Billing"
	portWarehouse = "Warehouse"
)

var (
	flowWays  = []string{wayFlat, wayXML, wayHTTP, wayTable, wayPartner}
	flowPorts = []string{portArchive, portApprovals, portBilling, portWarehouse}
)

// order has the entries of one order in the ledger.
type order struct {
	orderText

	way string
	// sequence counts the orders of a customer whose order is promised, from 1 on; it is 0 where none is, as two nodes take files and rows.
	sequence int
	// isRolledBack is true of an order that must arrive nowhere.
	isRolledBack bool
}

// orderText has the values of an order.
type orderText struct {
	Number   string `xml:"Head>Number"`
	Customer string `xml:"Head>Customer"`
	Region   string `xml:"Head>Region"`
	Amount   string `xml:"Head>Amount"`
	Note     string `xml:"Note"`
}

// noteRunes have what each form of an order has to write in its own way.
var noteRunes = []rune("abcdefghijklmnopqrstuvwxyz &<>äö€")

var regions = []string{"north", "south", "east", "west"}

// newOrderText invents an order.
func newOrderText(random *rand.Rand, number, customer string) orderText {
	note := make([]rune, 20+random.IntN(150))
	for i := range note {
		note[i] = noteRunes[random.IntN(len(noteRunes))]
	}
	return orderText{
		Number: number, Customer: customer, Region: regions[random.IntN(len(regions))],
		Amount: fmt.Sprintf("%d.%02d", 1+random.IntN(2000), random.IntN(100)), Note: strings.TrimSpace("note " + string(note)),
	}
}

// xml writes an order as XML of its schema.
func (o orderText) xml() string {
	var note strings.Builder
	_ = xml.EscapeText(&note, []byte(o.Note))
	return fmt.Sprintf(`<o:Order xmlns:o="http://shop.example/orders"><Head><Number>%s</Number><Customer>%s</Customer><Region>%s</Region>`+
		`<Amount>%s</Amount></Head><Note>%s</Note></o:Order>`, o.Number, o.Customer, o.Region, o.Amount, note.String())
}

// flat writes an order as two lines of a flat file.
func (o orderText) flat() string {
	return fmt.Sprintf("ORDER|%s|%s|%s|%s\n%s\n", o.Number, o.Customer, o.Region, o.Amount, o.Note)
}

// readOrder reads an order as it arrived.
func readOrder(document []byte) (o orderText, err error) {
	if err := xml.Unmarshal(document, &o); err != nil {
		return o, fmt.Errorf("read an order that arrived: %w", err)
	}
	return o, nil
}

// goesTo reports whether an order has to arrive at a port. The rules are written here a second time, in another language than the filters
// of the definitions.
func (o orderText) goesTo(port string) bool {
	switch port {
	case portBilling:
		return true
	case portArchive:
		return o.Region == "north"
	case portWarehouse:
		return o.Region == "south" || o.Region == "east"
	default:
		amount, _ := strconv.ParseFloat(o.Amount, 64)
		return amount >= 1000
	}
}
