package restapi_test

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/restapi"
	"github.com/brine-salt/brine/master/runner"
)

// keystone is a system that knows one user.
type keystone struct{}

// Authenticate implements eauth.System.
func (keystone) Authenticate(_ context.Context, _ map[string]any, username, password string) (bool, []string, error) {
	return username == "alice" && subtle.ConstantTimeCompare([]byte(password), []byte("secret")) == 1, nil, nil
}

// serve serves the interface of a master until the listener is closed.
func serve(m *master.Master, listener net.Listener, rules map[string]any) error {
	auth, err := eauth.New(eauth.Options{Config: rules, Systems: map[string]eauth.System{"ours": keystone{}}, Match: m.Match})
	if err != nil {
		return err
	}
	host := runner.Embedded(m, "ours_master", nil, "", slog.Default())
	api, err := restapi.New(restapi.Options{Master: m, Auth: auth, Runner: runner.NewClient(host), Wheel: runner.NewWheel(host)})
	if err != nil {
		return err
	}
	defer api.Close()
	return api.HTTP().Serve(restapi.Limit(listener, 4096, 1024))
}

// A program serves Salt's HTTP interface with its own authentication.
func ExampleServer() {
	m, err := master.New(master.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error)
	go func() { ended <- serve(m, listener, map[string]any{"ours": map[string]any{"alice": []any{"@runner"}}}) }()
	for _, password := range []string{"secret", "wrong"} {
		resp, err := http.Post("http://"+listener.Addr().String()+"/run", "application/json", strings.NewReader(
			`{"client": "runner", "fun": "test.arg", "arg": [1], "username": "alice", "password": "`+password+`", "eauth": "ours"}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		var answer map[string]any
		_ = json.NewDecoder(resp.Body).Decode(&answer) // errors are pages, for whoever does not ask for JSON
		resp.Body.Close()
		fmt.Println(resp.StatusCode, answer["return"])
	}
	listener.Close()
	<-ended
	// Output:
	// 200 [map[args:[1] kwargs:map[]]]
	// 401 <nil>
}
