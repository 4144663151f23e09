package runner_test

import (
	"os"
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// Scripts as teams have them, each with what it prints: they run as they are.
func TestScriptsOfTeamsRun(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"order_pipeline": `order 1, result 0
Msg 50000, Level 16, State 0, Procedure usp_PlaceOrder, Line 21
The order was not taken: The INSERT statement conflicted with the CHECK constraint "CK_Quantity". The conflict occurred in database "@db@", table "dbo.Orders", column 'Quantity'.
result -1, open 0
id customer
1 Anna
3 Carl
OrderID Customer Quantity Status
1 Anna 2 shipped
3 Carl 5 shipped
Problems
0`,
		"request_timer": `no such article
article attempts price state
book 1 12.5000 A
lost 2 NULL L
shoe 1 NULL E`,
		"audit_trigger": `(2 rows affected)
(1 rows affected)
(2 rows affected)
(1 rows affected)
(2 rows affected)
(1 rows affected)
(1 rows affected)
Verb Article Old New Who
insert book NULL 10.00 me
insert pen NULL 1.00 me
update book 10.00 11.00 me
delete pen 1.00 NULL me
(4 rows affected)
Article Price
book 11.00
(1 rows affected)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("testdata/" + name + ".sql")
			if err != nil {
				t.Fatal(err)
			}
			pool := parleytest.Database(t)
			log := serve(t, pool)
			config := pool.Config().ConnConfig
			got := strings.ReplaceAll(script(t, config, string(text)), config.Database, "@db@")
			expect(t, name, got, want)
			if t.Failed() {
				t.Log(log)
			}
		})
	}
}
