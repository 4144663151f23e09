package biztalk_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/biztalk"
	"github.com/parley-broker/parley/internal/flow/process"
)

const transactional = `module Shop
{
    internal service longrunning transaction Ship
    {
        message System.Xml.XmlDocument order;
        message System.Xml.XmlDocument answer;
        message System.Xml.XmlDocument price;
        port implements InType OrdersIn;
        port uses OutType StockOut;
        body ()
        {
            activate receive (OrdersIn.Op, order);
            call Shop.FindPrice (order, out price);
            send (StockOut.Op, price);
            scope atomic transaction Book
            {
                body ()
                {
                    System.Diagnostics.Debug.WriteLine("booked");
                    construct answer { answer = Shop.Helper.Make(order); }
                    send (StockOut.Op, answer);
                    suspend "wait";
                }
            }
            scope atomic transaction Ask
            {
                body ()
                {
                    send (StockOut.Op, order);
                    receive (StockOut.Op, answer);
                }
            }
        }
    }
    internal service atomic transaction Once
    {
        message System.Xml.XmlDocument order;
        port implements InType OrdersIn;
        body () { activate ((5 < Shop.Props.Amount) || (Shop.Props.Amount exists))receive (OrdersIn.Op, order); }
    }
}
`

// An orchestration is called by its name, whatever its transaction. A scope of one transaction holds nothing that waits or ends the step,
// also where something in it is left to do.
func TestTransactionsAreTranslated(t *testing.T) {
	t.Parallel()
	result, err := biztalk.Import([]biztalk.Source{{Name: "Ship.odx", Body: []byte(transactional)}}, biztalk.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := process.Check(result.Definitions)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v\n%s", problems, err, result.Definitions)
	}
	var d struct {
		Orchestrations map[string]json.RawMessage `json:"orchestration"`
	}
	if err := json.Unmarshal(result.Definitions, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Orchestrations) != 2 || d.Orchestrations["Ship"] == nil || d.Orchestrations["Once"] == nil {
		t.Errorf("%s", result.Definitions)
	}
	if once := string(d.Orchestrations["Once"]); !strings.Contains(once,
		`"filter":[[{"operator":"\u003e","property":"Shop.Props#Amount","value":"5"}],[{"operator":"exists","property":"Shop.Props#Amount"}]]`) {
		t.Errorf("%s", once)
	}
	if !slices.ContainsFunc(result.Omissions, func(o biztalk.Omission) bool {
		return o.IsStopped && o.What == "the transaction of scope atomic transaction Ask"
	}) {
		t.Errorf("%v", result.Omissions)
	}
}

// Fields of messages and properties are texts in expressions. The types that they have in their schemas are known by what they are joined
// with.
func TestTextsAreComparedAsTheirSchemasHaveThem(t *testing.T) {
	t.Parallel()
	result, err := biztalk.Import([]biztalk.Source{{Name: "Ask.odx", Body: []byte(`module Shop
{
    internal service Ask
    {
        message System.Xml.XmlDocument order;
        port implements InType OrdersIn;
        System.Double sum;
        body ()
        {
            activate receive (OrdersIn.Op, order);
            sum = order.Price * order(Shop.Props.Amount);
            if (order.IsVip == true && order(Shop.Props.Rush) != true && order.Old == false) { sum = 1.0; }
            else if (xpath(order, "//Note") != null && xpath(order, "string(//Mark)") == null) { sum = 2.0; }
            else if (order.Count > 5) { sum = 3.0; }
        }
    }
}
`)}}, biztalk.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := process.Check(result.Definitions)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v\n%s", problems, err, result.Definitions)
	}
	var plain any
	if err := json.Unmarshal(result.Definitions, &plain); err != nil {
		t.Fatal(err)
	}
	written := fmt.Sprint(plain)
	for _, want := range []string{
		"double(order.text('/*/Price')) * double(string(order.property('Shop.Props#Amount')))",
		"(order.text('/*/IsVip') in ['true', '1']) && !(string(order.property('Shop.Props#Rush')) in ['true', '1']) && !(order.text('/*/Old') in",
		"order.has('//Note') && !order.has('//Mark')", "double(order.text('/*/Count')) > double(5)",
	} {
		if !strings.Contains(written, want) {
			t.Errorf("there is no %s in\n%s", want, written)
		}
	}
}
