package runner_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// articles names a folder with texts of others in which scripts of T-SQL stand, such as the articles that Parley's own measurements
// are compared with. They are not ours to keep here, so without the folder these tests are left out.
const articles = "PARLEY_TEST_ARTICLES"

// article reads the text of an article with the signs that its typesetter has put in the place of T-SQL's.
func article(t *testing.T, pattern string) string {
	t.Helper()
	folder := os.Getenv(articles)
	if folder == "" {
		t.Skip(articles + " names no folder with articles")
	}
	files, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(files) != 1 {
		t.Fatal(pattern, files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("‘", "'", "’", "'", "–(", "--(", "— ", "-- ").Replace(string(content))
}

// begins finds the lines of prose that a statement may begin with.
var begins = regexp.MustCompile(`^(CREATE |IF EXISTS|USE \[|ALTER DATABASE|DECLARE @|-- This procedure)`)

// batchesOf gives the batches of an article: from a line that begins a statement to a line GO.
func batchesOf(text string) (batches []string) {
	var batch []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \r")
		switch {
		case len(batch) == 0 && !begins.MatchString(line):
		case line == "GO":
			batches = append(batches, strings.Join(batch, "\n"))
			batch = nil
		case line != "":
			batch = append(batch, line)
		}
	}
	return batches
}

// The article of 2006 on procedures that receive: its six procedures, the load, and the measurements, as they are printed, up to what its
// typesetter has lost: a minus, the dashes of the second line of a comment. The first procedure stands in it before its database.
func TestTheArticleOnProceduresRunsAsItIsPrinted(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("@conversationCount1", "@conversationCount - 1",
		"number of messages and conversations passed in", "-- number of messages and conversations passed in",
		"100,100,", "3,4,").Replace(article(t, "003_*.txt"))
	batches := batchesOf(text)
	first := batches[0]
	if !strings.Contains(first, "BasicReceive") {
		t.Fatal(first)
	}
	load, measurement := "", ""
	for _, batch := range batches {
		switch {
		case strings.Contains(batch, "N'<Test/>'") && load == "":
			load = batch
		case strings.Contains(batch, "EXEC [BasicReceive]"):
			measurement = batch
		}
	}
	measure := func(procedure string) string { return strings.Replace(measurement, "BasicReceive", procedure, 1) }
	var ordered []string
	for _, batch := range batches[1:] {
		ordered = append(ordered, batch)
		// Of the last three procedures the article shows the results, and not their measurement, which is that of all.
		switch {
		case strings.HasPrefix(batch, "CREATE QUEUE"):
			ordered = append(ordered, first)
		case strings.HasPrefix(batch, "CREATE PROCEDURE [CursorMessageTypeReceive]"):
			ordered = append(ordered, load, measure("CursorMessageTypeReceive"))
		case strings.Contains(batch, "DECLARE @xmlPayload"):
			ordered = append(ordered, measure("RowsetDatagram"), "SELECT COUNT(*) AS [Stored] FROM [PayloadData] WHERE [Payload] = N'Some Data'")
		case strings.HasPrefix(batch, "CREATE PROCEDURE [RowsetBinaryDatagram]"):
			ordered = append(ordered, `DECLARE @b varbinary(max);
SELECT @b = dbo.BinaryMarhsalPayload('2006-10-14T15:09:16.013', 0x41004200, N'Remus');
EXEC LoadQueueReceivePerfBlog 3,4, @b;`, measure("RowsetBinaryDatagram"), `SELECT COUNT(*) AS [Stored] FROM [PayloadData]
WHERE [DateTime] = '2006-10-14T15:09:16.013' AND [User] = N'Remus' AND CAST([Payload] AS VARBINARY(MAX)) = 0x41004200;`)
		}
	}
	got := wholeText(t, strings.Join(ordered, "\nGO\n"), "ReceivePerfBlog")
	rate := "Start End Count Duration Rate\n<time> <time> 12 D R\n(1 rows affected)\n"
	stored := "Stored\n12\n(1 rows affected)"
	used := "Changed database context to 'ReceivePerfBlog'.\n"
	want := "CREATE DATABASE ON files has no effect: PostgreSQL keeps databases where it keeps all.\n" + used + used +
		rate + strings.Repeat(used+rate, 2) + rate + used + rate + stored + "\n" + rate + stored
	if got = measured(12).ReplaceAllString(got, "<time> <time> 12 D R"); got != want {
		t.Errorf("--- got\n%s\n--- want\n%s", got, want)
	}
}

// fenced finds the blocks of code of a paper.
var fenced = regexp.MustCompile("(?s)\n```\n(.*?)\n```")

// The paper on scaling out: definitions for an initiator and a target, a dialog, the procedure that is activated, and the senders of 150
// dialogs each. This test puts back the points, the underscores and the word AS that its scanner has lost. The paper names a role, tables and an instance
// that it does not define; this test defines them.
func TestThePaperOnScalingOutRunsAsItIsPrinted(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("TCP:// MY", "TCP://MY", "message body", "message_body", "conversation handle", "conversation_handle",
		"timeout 3000:", "timeout 50;", "[SRPerf_Queue_LabTest]\nbegin", "[SRPerf_Queue_LabTest] as\nbegin", "@i = 0:", "@i = 0;",
		"open conv:", "open conv;", "end</pre>", "end", `\_`, "_", "while (@i < 7500)", "set nocount on while (@i < 300)").Replace(article(t, "000_*.txt"))
	blocks := map[string]string{}
	for _, found := range fenced.FindAllStringSubmatch(text, -1) {
		for _, mark := range []string{
			"CREATE MESSAGE TYPE", "CREATE ENDPOINT", "@service_broker_guid retrieved", "ACTIVATION (", "create procedure", "150) = 0", "declare conv",
		} {
			if strings.Contains(found[1], mark) {
				blocks[mark] = strings.TrimSuffix(found[1], "\nGO")
			}
		}
	}
	if len(blocks) != 7 {
		t.Fatalf("%d blocks", len(blocks))
	}
	binding := regexp.MustCompile(`(?s)CREATE REMOTE SERVICE BINDING.*?ANONYMOUS = OFF`).FindString(text)
	own := "declare @service_broker_guid uniqueidentifier\n"
	rest := "select @service_broker_guid = service_broker_guid from sys.databases where name = db_name()\n"
	dialog := strings.Replace(blocks["@service_broker_guid retrieved"], own, own+rest, 1)
	loop := strings.Replace(blocks["150) = 0"], "declare @i int", own+rest+"declare @i int", 1)
	got := wholeText(t, strings.Join([]string{
		"USE Lab\nCREATE USER [User_MYINITIATORSERVER_INST1_SSBSender] WITHOUT LOGIN\nCREATE USER [Proxy:User_MYINITIATORSERVER_INST1_SSBSender] WITHOUT LOGIN\n" +
			"CREATE TABLE dbo.messageDrop (messageVal varbinary(2000))\nCREATE TABLE dbo.dialogs (k int, dh uniqueidentifier)",
		blocks["CREATE MESSAGE TYPE"], binding, blocks["CREATE ENDPOINT"], dialog, loop, blocks["declare conv"], blocks["create procedure"],
		strings.NewReplacer("CREATE QUEUE", "ALTER QUEUE", " ON [PRIMARY]", "").Replace(blocks["ACTIVATION ("]),
		"EXEC SRPerf_Queue_LabTest\nSELECT COUNT(*) AS kept FROM dbo.dialogs\nSELECT COUNT(*) AS dropped FROM messageDrop",
		"DROP REMOTE SERVICE BINDING [Test_MYTARGETSERVER_INST2_1]\nDROP ROUTE [Test_MYTARGETSERVER_INST2_1]\n" +
			"DROP USER [User_MYINITIATORSERVER_INST1_SSBSender]\nDROP USER [Proxy:User_MYINITIATORSERVER_INST1_SSBSender]",
	}, "\nGO\n"), "Lab")
	want := `Changed database context to 'Lab'.
ON PRIMARY has no effect: PostgreSQL places the tables of the broker.
CREATE ENDPOINT has no effect: a daemon with --listen stands for a broker endpoint.
kept
2
dropped
301`
	if got != want {
		t.Errorf("--- got\n%s\n--- want\n%s", got, want)
	}
}
