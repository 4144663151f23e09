package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptWebAddress makes a web address for the rest of the script. %s in its text stands for the address that was asked for.
func scriptWebAddress(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: webaddress NAME STATUS TEXT")
	}
	status, err := strconv.Atoi(args[1])
	ts.Check(err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, args[2]+" at "+r.URL.String())
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
}
