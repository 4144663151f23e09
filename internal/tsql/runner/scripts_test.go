package runner_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// moments are the figures that differ from run to run: times, seconds, rates.
var moments = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}`)

// measured finds the row of a measurement of so many messages.
func measured(count int) *regexp.Regexp {
	return regexp.MustCompile(fmt.Sprintf(`(?m)^<time> <time> %d \d+ [\d.]+(E[+-]\d+)?$`, count))
}

// whole runs a script of testdata whose database gets a name of this test.
func whole(t *testing.T, file, database string, replacements ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return wholeText(t, strings.NewReplacer(replacements...).Replace(string(text)), database)
}

// wholeText runs a script whose database gets a name of this test.
func wholeText(t *testing.T, text, database string) string {
	t.Helper()
	pool := parleytest.EmptyDatabase(t)
	config := pool.Config().ConnConfig
	own := database + "_" + config.Database
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := pool.Exec(ctx, "drop database if exists "+pgx.Identifier{strings.ToLower(own)}.Sanitize()+" with (force)"); err != nil {
			t.Error(err)
		}
	})
	mine := regexp.MustCompile(`\b`+database+`\b`).ReplaceAllString(text, own)
	if !strings.Contains(mine, "CREATE DATABASE") {
		mine = "CREATE DATABASE [" + own + "]\nGO\n" + mine
	}
	got := strings.ReplaceAll(script(t, config, mine), own, database)
	lines := strings.Split(got, "\n")
	for i, line := range lines {
		lines[i] = moments.ReplaceAllString(line, "<time>")
	}
	return strings.Join(lines, "\n")
}

// The procedures that drain a queue, by one message, by batches, by cursors and by sets, with the procedures that fill and measure.
// There are 3 conversations of 4 messages; with PARLEY_TEST_LONG=1 as many as the article of 2006 has, to which they are compared.
func TestTheProceduresThatDrainAQueueRun(t *testing.T) {
	t.Parallel()
	load, count := "3, 4", 12
	if os.Getenv("PARLEY_TEST_LONG") != "" {
		load, count = "100, 100", 10000
	}
	got := whole(t, "drain.sql", "Waterworks", "100, 100", load)
	rate := fmt.Sprintf("begun ended messages seconds rate\n<time> <time> %d D R\n(1 rows affected)\n", count)
	stored := fmt.Sprintf("stored\n%d\n(1 rows affected)", count)
	used := "Changed database context to 'Waterworks'.\n"
	want := "CREATE DATABASE ON files has no effect: PostgreSQL keeps databases where it keeps all.\n" + used +
		rate + strings.Repeat(used+rate, 4) + stored +
		"\npacked\n0x0000985A00F9BCD400000000000000030102FF0000000641006E006E00\n(1 rows affected)\n" + rate + stored
	if got = measured(count).ReplaceAllString(got, fmt.Sprintf("<time> <time> %d D R", count)); got != want {
		t.Errorf("--- got\n%s\n--- want\n%s", got, want)
	}
}

// A tutorial in our own words: a conversation in one database, from its definitions to their end.
func TestAConversationInOneDatabaseRunsFromItsDefinitionsToTheirEnd(t *testing.T) {
	t.Parallel()
	got := whole(t, "one_database.sql", "Library")
	want := `Changed database context to 'master'.
Changed database context to 'Library'.
Asked
<Question>Is it in?</Question>
(1 rows affected)
Heard
<Question>Is it in?</Question>
(1 rows affected)
Told
<Answer>On the third shelf.</Answer>
(1 rows affected)
Learnt
<Answer>On the third shelf.</Answer>
(1 rows affected)
Remaining
0
(1 rows affected)`
	if got != want {
		t.Errorf("--- got\n%s\n--- want\n%s", got, want)
	}
}
