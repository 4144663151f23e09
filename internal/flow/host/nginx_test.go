package host_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// Behind nginx clients get answers as they are. Where nginx gives up first, the answer is late, and a repeat under the key gets it.
func TestRequestsBehindNginx(t *testing.T) {
	t.Parallel()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed")
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed")
	}
	e, address, _ := newDesk(t, "1 minute")
	listen := freeAddress(t)
	folder := t.TempDir()
	config := filepath.Join(folder, "nginx.conf")
	written := strings.NewReplacer("$listen", listen, "$desk", strings.TrimSuffix(address, "/desk"), "$folder", folder).Replace(`
		daemon off;
		master_process off;
		pid $folder/pid;
		error_log stderr;
		events {}
		http {
			access_log off;
			client_body_temp_path $folder/body;
			proxy_temp_path $folder/proxy;
			fastcgi_temp_path $folder/fastcgi;
			uwsgi_temp_path $folder/uwsgi;
			scgi_temp_path $folder/scgi;
			server {
				listen $listen;
				proxy_next_upstream off;
				location /desk { proxy_pass $desk; }
				location /hasty { proxy_pass $desk/desk; proxy_read_timeout 1s; }
			}
		}`)
	if err := os.WriteFile(config, []byte(written), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), nginx, "-p", folder, "-e", "stderr", "-c", config)
	command.Stderr = t.Output()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	front := "http://" + listen
	curled := func(arguments ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), curl, append([]string{"-s", "-w", "\n%{http_code} %{content_type}"}, arguments...)...).Output()
		if err != nil {
			return err.Error()
		}
		return string(out)
	}
	parleytest.Until(t, "nginx is there", func() bool {
		return strings.HasSuffix(curled(front+"/desk"), "\n405 application/json")
	})
	if got := curled("-H", "X-Key: function", "-d", "hello", front+"/desk"); got != "{\"said\" : \"hello\"}\n200 application/json; charset=utf-8" {
		t.Errorf("the function gave %q", got)
	}
	if got := curled("-H", "X-Key: clerk", "-d", "0123456789", front+"/desk"); got != strings.Repeat("0123456789", 100_000)+"\n200 text/csv; charset=latin1" {
		t.Errorf("the server gave %d bytes, ending %q", len(got), got[max(0, len(got)-60):])
	}
	hasty := make(chan string, 1)
	ask := func() {
		hasty <- curled("-H", "X-Key: table", "-H", "Idempotency-Key: k", "-d", "slow", front+"/hasty")
	}
	go ask()
	token := e.asked("slow")
	if got := parleytest.Receive(t, hasty, "nginx gives up"); !strings.HasSuffix(got, "\n504 text/html") {
		t.Errorf("nginx gave %q", got)
	}
	parleytest.Until(t, "the node has noticed", func() bool {
		return sqltest.Value[bool](e.Session, "select not exists (select from parley_flow._p_request where nodes <> '{}')")
	})
	sqltest.Equal(e.Session, "ANSWERED", "select parley_flow.answer($1, 'at last'::text)", token)
	go ask()
	if got := parleytest.Receive(t, hasty, "the repeat is answered"); got != "at last\n200 text/plain; charset=utf-8" &&
		got != "at last\n200 application/octet-stream" {
		t.Errorf("the repeat gave %q", got)
	}
	if waits := sqltest.Value[string](e.Session, "select count(*)::text from desk.asked"); waits != "0" {
		t.Error(fmt.Sprint("the request was done again: ", waits))
	}
}
