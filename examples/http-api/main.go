// Command http-api serves Salt's HTTP interface beside the master, with a log-in of the program's own. The program is also the client.
package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/brine-salt/brine/examples/internal/local"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/restapi"
	"github.com/brine-salt/brine/master/runner"
	_ "github.com/brine-salt/brine/modules/test"
	"github.com/brine-salt/brine/protocol/events"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// accounts is an authentication system with one user.
type accounts struct{}

// Authenticate implements eauth.System.
func (accounts) Authenticate(_ context.Context, _ map[string]any, user, password string) (bool, []string, error) {
	return user == "alice" && subtle.ConstantTimeCompare([]byte(password), []byte("secret")) == 1, nil, nil
}

// rules say what each user of an eauth system may do, as external_auth does in Salt's configuration.
var rules = map[string]any{"accounts": map[string]any{"alice": []any{"test.*", "@runner"}}}

func run(ctx context.Context) error {
	m, err := master.New(master.Options{Network: master.Loopback(),
		Keys: master.KeyOptions{AutoAccept: true}})
	if err != nil {
		return err
	}
	stop, err := local.Serve(ctx, m)
	if err != nil {
		return err
	}
	defer stop()
	auth, err := eauth.New(eauth.Options{Config: rules, Systems: map[string]eauth.System{"accounts": accounts{}}, Match: m.Match})
	if err != nil {
		return err
	}
	host := runner.Embedded(m, "master", nil, "", slog.New(slog.DiscardHandler))
	api, err := restapi.New(restapi.Options{Master: m, Auth: auth, Runner: runner.NewClient(host), Wheel: runner.NewWheel(host)})
	if err != nil {
		return err
	}
	defer api.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // without TLS on loopback only
	if err != nil {
		return err
	}
	server := api.HTTP()
	go server.Serve(restapi.Limit(listener, 4096, 1024))
	defer server.Close()

	started := m.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/minion/web1/start"})
	defer started.Close()
	dir, err := os.MkdirTemp("", "http-api")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	end, err := local.Minion(ctx, m, "web1", dir)
	if err != nil {
		return err
	}
	defer end()
	if _, err := started.Next(ctx); err != nil {
		return err
	}

	for _, command := range []map[string]any{
		{"client": "local", "tgt": "web1", "fun": "test.ping", "password": "secret"},
		{"client": "local", "tgt": "web1", "fun": "cmd.run", "arg": []any{"id"}, "password": "secret"},
		{"client": "runner", "fun": "manage.present", "password": "secret"},
		{"client": "local", "tgt": "web1", "fun": "test.ping", "password": "guess"},
	} {
		command["username"], command["eauth"] = "alice", "accounts"
		if err := post("http://"+listener.Addr().String()+"/run", command); err != nil {
			return err
		}
	}
	return nil
}

func post(url string, command map[string]any) error {
	body, err := json.Marshal(command)
	if err != nil {
		return err
	}
	resp, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Return any `json:"return"`
	}
	if resp.StatusCode == http.StatusOK {
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			return err
		}
	}
	fmt.Println(command["client"], command["fun"], "→", resp.StatusCode, answer.Return)
	return nil
}
