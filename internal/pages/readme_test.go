package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// mailOfTheReadme is the block of SQL that sends mail. It needs what the tutorial of mail configures.
var mailOfTheReadme = regexp.MustCompile("(?s)\n```sql mail\n(.*?)```\n")

func TestMailOfTheReadmeIsSent(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := mailOfTheReadme.FindSubmatch(text)
	if found == nil {
		t.Fatal("README.md has no block that sends mail")
	}
	s := newSession(t, parleytest.Database(t))
	s.run(block{sql: `create table orders (number bigint primary key, customer text);
		select count(*) from parley_mail.apply('{
			"organization": {"organization": {"default_domain": "shop.example", "fqdn": "mail.shop.example"}},
			"accepted domain": {"shop.example": {}}
		}');`})
	s.run(block{sql: string(found[1])})
	waiting := s.run(block{sql: `select o.number, q.messages from orders as o cross join parley_mail.queues as q where q.messages > 0;`})
	if want := "number | messages --- 7 | 1 (1 row)"; words(essential(waiting)) != want {
		t.Errorf("after the README's transaction there are the orders and messages\n%s", waiting)
	}
}
