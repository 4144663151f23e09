package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// A person who knows nothing of the console finds a message that failed from the first page, mends it, and has it worked.
func TestMessageThatFailedIsFoundFromTheOverviewMendedAndPutBack(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	number := setAside(t, pool)
	v := enter(t, pool, "", false)
	follow := func(page, link string) string {
		_, body := v.get(page)
		if !strings.Contains(body, `href="`+link+`"`) {
			t.Fatalf("%s has no link to %s: %s", page, link, body)
		}
		return link
	}
	message := "/failed/messages/jobs/" + number
	follow("/", "/failed/messages")
	follow("/queues", "/failed/messages?queue=jobs")
	follow(follow(follow("/queues/jobs", "/failed/messages?queue=jobs"), message), message+"/edit")
	_, form := v.get(message + "/edit")
	digest := regexp.MustCompile(`name="digest" value="([^"]*)"`).FindStringSubmatch(form)
	status, body := v.post(message+"/edit", url.Values{
		"once": {onceInput.FindStringSubmatch(form)[1]}, "digest": {digest[1]}, "body": {"do it well"}, "reason": {"it was not well"},
	})
	if status != http.StatusSeeOther {
		t.Fatalf("the edit was answered with %d: %s", status, body)
	}
	if _, body := v.act(message, url.Values{"action": {"retry"}}); !strings.Contains(body, "Done for 1") {
		t.Errorf("it is not put back: %s", body)
	}
	if _, body := v.get("/queues/jobs"); !strings.Contains(body, "do it well") || strings.Contains(body, "/failed/messages?queue") {
		t.Errorf("the queue does not show it: %s", body)
	}
}
