package web_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/flow/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter/web"
)

func TestTheRulesOfAdaptersAreKept(t *testing.T) {
	t.Parallel()
	kind, address := web.New(), "http://"+free(t)+"/orders"
	source, _ := endpoint(t, address, `{"authentication": "none", "idempotency": "required"}`)
	adaptertest.CheckKind(t, kind)
	adaptertest.CheckReceiver(t, adaptertest.Source{
		Kind: kind, Endpoint: source, HasKeys: true,
		Put: func(body string) {
			go func() {
				for t.Context().Err() == nil {
					request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
					if err != nil {
						t.Error(err)
						return
					}
					request.Header.Set("Idempotency-Key", body)
					if answer, err := http.DefaultClient.Do(request); err == nil {
						_ = answer.Body.Close()
						if answer.StatusCode < 300 {
							return
						}
					}
					<-time.After(20 * time.Millisecond)
				}
			}()
		},
	})
	var mu sync.Mutex
	var bodies []string
	destination, _ := endpoint(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			bodies = append(bodies, string(body))
		}
		w.WriteHeader(http.StatusAccepted)
	}), `{}`)
	adaptertest.CheckSender(t, adaptertest.Destination{Kind: kind, Endpoint: destination, Received: func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string{}, bodies...)
	}})
}
