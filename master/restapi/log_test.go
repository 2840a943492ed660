package restapi_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master/restapi"
)

// TestRefusedLogInsAreLogged: with the address, which programs that shut out addresses need, and never the password.
func TestRefusedLogInsAreLogged(t *testing.T) {
	log := new(testlog.Buffer)
	s := newSite(t, func(o *restapi.Options) { o.Log = slog.New(slog.NewTextHandler(log, nil)) })
	s.token = ""
	for _, body := range []string{`{"username":"alice","password":"wrong-one","eauth":"file"}`, `{"username":"alice","password":"wrong-one","eauth":"pam"}`} {
		if status, text, _ := s.do("POST", "/login", "application/json", body); status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	text := log.String()
	if strings.Count(text, `msg="Log-in refused" peer=127.0.0.1:`) != 2 || strings.Contains(text, "wrong-one") {
		t.Errorf("the log is %s", text)
	}
}

// TestClientThatLeavesIsNoError: a browser that leaves a page while it loads causes no error in the log.
func TestClientThatLeavesIsNoError(t *testing.T) {
	log := new(testlog.Buffer)
	s := newSite(t, func(o *restapi.Options) {
		o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	if status, text, _ := s.do("POST", "/keys", "application/json", `{"mid":"new1"}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, text) // a minion that does not answer
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", "/", strings.NewReader(`{"client":"local","tgt":"*","fun":"test.ping"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Auth-Token", s.token)
	s.rest.ServeHTTP(httptest.NewRecorder(), r)
	if text := log.String(); strings.Contains(text, "level=ERROR") || !strings.Contains(text, "The client has left") {
		t.Errorf("the log is %s", text)
	}
}
