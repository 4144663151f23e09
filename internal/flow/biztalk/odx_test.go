package biztalk_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/biztalk"
	"github.com/parley-broker/parley/internal/flow/process"
)

const odx = `#if __DESIGNER_DATA
<om:MetaModel> module service { broken
#endif // __DESIGNER_DATA
[Microsoft.XLANGs.BaseTypes.BPELExportable(false)]
module Shop.Flow
{
    internal porttype InType { oneway Op { Order }; };
    internal correlationtype ByNumber { Shop.Props.PoNumber };
    internal service Fulfil
    {
        [Microsoft.XLANGs.BaseTypes.LogicalBinding()]
        port implements InType OrdersIn;
        port uses OutType StockOut;
        message Shop.Order order;
        message Shop.Answer answer;
        message System.Xml.XmlDocument ask;
        correlation ByNumber numbers;
        System.Int32 count;
        System.String text;
        System.Double total;
        System.Xml.XmlDocument doc;
        body ()
        {
            [Microsoft.XLANGs.BaseTypes.DesignerPosition("x")]
            activate ((Shop.Props.PoNumber != "") && (BTS.ReceivePortName == "Orders"))receive (OrdersIn.Op, order, initialize numbers);
            count = 0; // a comment; with a semicolon
            text = "a" + count.ToString() + order.Head.Name;
            total = System.Convert.ToDouble(xpath(order, "string(/*[local-name()='Order']/*[local-name()='Sum'])"));
            construct ask
            {
                doc = new System.Xml.XmlDocument();
                doc.LoadXml(@"<Ask n=""1""><N>" + text + "</N></Ask>");
                ask = doc;
            }
            construct answer
            {
                answer = order;
                answer.Head.Name = "b" + text;
                xpath(answer, "//*[local-name()='Sum']") = 2;
                answer(Shop.Props.PoNumber) = text;
            }
            send (StockOut.Op, ask, numbers);
            if (count > 1 && !(total == 2.5))
            {
                terminate "too much: " + text;
            }
            else if (count == 0)
            {
                suspend "wait";
            }
            else
            {
                delay new System.TimeSpan(0, 1, 30, 0);
            }
            while (count < 3)
            {
                count = count + 1;
                listen
                {
                    until receive (OrdersIn.Op, answer, numbers)
                    {
                        total = total * 2;
                    }
                    timeout new System.TimeSpan(1, 0, 0)
                    {
                        throw new Shop.Late("late: " + text);
                    }
                }
            }
            scope longrunning transaction Reserve
            {
                body
                {
                    parallel { task { send (StockOut.Op, order); } task { construct answer { transform (answer) = Shop.Maps.OrderToAnswer (order); } } }
                }
                exceptions
                {
                    catch (System.Exception e)
                    {
                        text = e.Message;
                        System.Diagnostics.EventLog.WriteEntry("Orchestration", e.Message);
                        throw e;
                    }
                }
                compensation { send (StockOut.Op, order); }
            }
            construct answer { answer = Shop.Helper.Make(order); }
            send (StockOut.Op, answer);
            call Shop.Flow.Other ();
            exec Shop.Flow.Second ();
        }
    }
    public service Second { System.Int32 n; body (System.Int32 limit) { n = limit + 1; } }
}
`

func TestOrchestrationsAreTranslatedAndSayWhatIsLeft(t *testing.T) {
	t.Parallel()
	result, err := biztalk.Import([]biztalk.Source{{Name: "Fulfil.odx", Body: append([]byte("\xef\xbb\xbf"), odx...)}}, biztalk.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := process.Check(result.Definitions)
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v %v\n%s", problems, err, result.Definitions)
	}
	var d struct {
		Orchestrations map[string]struct {
			State      string
			Messages   map[string]string
			Variables  map[string]string
			Parameters map[string]string
			Body       json.RawMessage
		} `json:"orchestration"`
	}
	if err := json.Unmarshal(result.Definitions, &d); err != nil {
		t.Fatal(err)
	}
	o := d.Orchestrations["Fulfil"]
	if o.State != "Bound" || d.Orchestrations["Second"].State != "" || d.Orchestrations["Second"].Parameters["limit"] != "integer" {
		t.Errorf("%+v", d.Orchestrations)
	}
	for _, want := range []string{
		`"filter":[[{"operator":"\u003c\u003e","property":"Shop.Props#PoNumber","value":""},{"operator":"=","property":"ReceivePortName","value":"Orders"}]]`,
		`{"set":{"my_text":"'a' + string(count) + order.text('/*/Head/Name')"}}`,
		`{"set":{"total":"double(order.text(\"/*[local-name()='Order']/*[local-name()='Sum']\", ''))"}}`,
		`"template":"\u003cAsk n=\"1\"\u003e\u003cN\u003e{{my_text}}\u003c/N\u003e\u003c/Ask\u003e"`,
		`"set":{"/*/Head/Name":"'b' + my_text","//*[local-name()='Sum']":"2"}`, `"properties":{"Shop.Props#PoNumber":"my_text"}`,
		`{"send":{"follow":["numbers"],"message":"ask","port":"StockOut"}}`, `"when":"count \u003e 1 \u0026\u0026 !(total == 2.5)"`,
		`{"delay":"1 hours 30 minutes"}`, `{"delay":"1 hours","do":[{"throw":{"code":"Shop.Late","message":"late: {{my_text}}"}}]}`,
		`"name":"Reserve"`, `{"throw":"again"}`, `"as":"e"`, `{"set":{"my_text":"e.message"}}`, `"map":"Shop.Maps.OrderToAnswer"`, `"compensate":[{"send"`,
		`"suspend":"left to do: System.Diagnostics.EventLog.WriteEntry(`, `{"terminate":"left to do: construct answer"}`,
		`"suspend":"left to do: call Other"`, `{"start":{"orchestration":"Second"}}`,
	} {
		if !strings.Contains(string(o.Body), strings.ReplaceAll(want, "my_text", "text")) && !strings.Contains(string(o.Body), want) {
			t.Errorf("the body has no %s:\n%s", want, o.Body)
		}
	}
	var stopping []string
	for _, omission := range result.Omissions {
		if omission.IsStopped {
			stopping = append(stopping, omission.What)
		}
		if omission.Line < 6 {
			t.Errorf("%s has no line", omission)
		}
	}
	if len(stopping) != 3 || !slices.ContainsFunc(stopping, func(s string) bool { return strings.HasPrefix(s, "System.Diagnostics") }) {
		t.Errorf("left are %q", stopping)
	}
}

func TestATextThatIsNoOrchestrationIsRefused(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "module A { porttype B { oneway C { D }; }; }", "}", "<x/>", "module"} {
		if _, err := biztalk.Import([]biztalk.Source{{Name: "x.ODX", Body: []byte(body)}}, biztalk.Settings{}); err == nil {
			t.Errorf("%q is taken", body)
		}
	}
}

func FuzzOrchestration(f *testing.F) {
	f.Add([]byte(odx))
	f.Add([]byte(`module A { service B { body () { if (a) { } else { throw new X("{{"); } construct m { m = "a" + ; } } } }`))
	f.Fuzz(func(t *testing.T, body []byte) {
		result, err := biztalk.Import([]biztalk.Source{{Name: "x.odx", Body: body}}, biztalk.Settings{})
		if err == nil && !json.Valid(result.Definitions) {
			t.Fatalf("%q becomes %s", body, result.Definitions)
		}
	})
}
