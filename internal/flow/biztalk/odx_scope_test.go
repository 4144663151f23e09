package biztalk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/biztalk"
	"github.com/parley-broker/parley/internal/flow/process"
)

const odxScopes = `module Shop
{
    internal porttype T { oneway Op { Order }; };
    service Fulfil
    {
        port implements T In;
        port uses T Out;
        message Shop.Order order;
        body ()
        {
            activate receive (In.Op, order);
            scope longrunning transaction Whole timeout new System.TimeSpan(0, 30, 0)
            {
                body
                {
                    scope longrunning transaction Reserve { body { send (Out.Op, order); } compensation () { send (Out.Op, order); } }
                    scope longrunning transaction Charge timeout new System.TimeSpan(1, 0, 0, 0)
                    {
                        body { send (Out.Op, order); }
                        exceptions { catch (Microsoft.XLANGs.BaseTypes.TimeoutException late) { throw late; } }
                    }
                }
                exceptions
                {
                    catch (Shop.Full e) { compensate Reserve (); }
                    catch (Shop.Other e) { compensate Whole (); }
                    catch (Shop.Third e) { $inner }
                }
            }
            $outside
        }
    }
}`

func importScopes(t *testing.T, inner, outside string) (written string, omissions []biztalk.Omission) {
	t.Helper()
	text := strings.NewReplacer("$inner", inner, "$outside", outside).Replace(odxScopes)
	result, err := biztalk.Import([]biztalk.Source{{Name: "Fulfil.odx", Body: []byte(text)}}, biztalk.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := process.Check(result.Definitions)
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v %v\n%s", problems, err, result.Definitions)
	}
	return string(result.Definitions), result.Omissions
}

func TestTimeOutsAndCompensationOfScopesAreTranslated(t *testing.T) {
	t.Parallel()
	written, omissions := importScopes(t, `terminate "";`, "")
	for _, omission := range omissions {
		if omission.IsStopped {
			t.Errorf("left is %s", omission)
		}
	}
	for _, want := range []string{
		`"timeout":"30 minutes"`, `"timeout":"1 days"`, `{"as":"late","code":"timeout","do":[{"throw":"again"}]}`,
		`{"as":"e","code":"Shop.Full","do":[{"compensate":"Reserve"}]}`, `{"as":"e","code":"Shop.Other","do":[{"compensate":"all"}]}`,
		`{"terminate":"no reason was given"}`,
		`{"code":"timeout","do":[{"throw":"again"}]}`, // nothing of the original catches it in the scope
	} {
		if !strings.Contains(written, want) {
			t.Errorf("there is no %s in\n%s", want, written)
		}
	}
}

func TestCompensationThatNamesNoInnerScopeIsLeftToDo(t *testing.T) {
	t.Parallel()
	for inner, outside := range map[string]string{
		"compensate Elsewhere ();":      "",
		"compensate Reserve (order);":   "",
		"order = order;":                "compensate Whole ();",
		"compensate ();":                "",
		"compensate Reserve (in order)": "",
	} {
		_, omissions := importScopes(t, inner, outside)
		isLeft := false
		for _, omission := range omissions {
			isLeft = isLeft || omission.IsStopped && strings.Contains(omission.What, "compensate")
		}
		if !isLeft {
			t.Errorf("%q and %q leave nothing to do: %v", inner, outside, omissions)
		}
	}
}

// A statement that stands where the language has none is not passed over: neither in a scope nor in an orchestration.
func TestNothingOfAScopeIsPassedOver(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]string{
		"something before the body":    `scope longrunning transaction Late { timeout new System.TimeSpan(0, 0, 30) body { send (Out.Op, order); } }`,
		"a part that nobody knows":     `scope { body { send (Out.Op, order); } finally { send (Out.Op, order); } }`,
		"a part that nobody knows, in": `scope atomic transaction T { isolation { send (Out.Op, order); } body { order = order; } }`,
		"a condition without a block":  `if (1 == 1) send (Out.Op, order);`,
		"a loop without a block":       `while (1 == 2) send (Out.Op, order);`,
	} {
		_, omissions := importScopes(t, `terminate "";`, scope)
		if !slices.ContainsFunc(omissions, func(o biztalk.Omission) bool { return o.IsStopped }) {
			t.Errorf("%s: nothing is left to do of %s", name, scope)
		}
	}
}
