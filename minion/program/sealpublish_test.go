//go:build linux

package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/minion/keys"
	"github.com/brine-salt/brine/modules"
)

// proofMaster is the environment variable with the path of brine-master, for the copy of the test on the private
// host.
const proofMaster = "BRINE_SEAL_PROOF_MASTER"

// A publisher is a real master, for the requests of the proof that arrive over the network as signed and encrypted
// orders.
type publisher struct {
	dir    string
	ports  [2]int
	client *http.Client
}

// startPublisher starts a master that accepts every key, and writes its address into the proof's host.
func startPublisher(t *testing.T, host string) *publisher {
	t.Helper()
	p := &publisher{dir: filepath.Join(host, "master"), ports: [2]int{freeport.Port(t), freeport.Port(t)}}
	socket := filepath.Join(p.dir, "s")
	p.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	conf := fmt.Sprintf("root_dir: %[1]s\npki_dir: %[1]s/pki\ncachedir: %[1]s/cache\nsock_dir: %[1]s/run\npidfile: %[1]s/pid\nlog_file: %[1]s/log\nfile_roots: {base: [%[1]s/srv]}\n"+
		"interface: 127.0.0.1\npublish_port: %[2]d\nret_port: %[3]d\nuser: root\nauto_accept: true\nrest_cherrypy: {socket: %[4]s}\nnetapi_enable_clients: [local, runner, wheel]\n"+
		"external_auth: {peer: {'0': ['.*', '@runner', '@wheel']}}\nreactor: [{'bypass/*': [%[1]s/react.sls]}]\n", p.dir, p.ports[0], p.ports[1], socket)
	for name, text := range map[string]string{"master": conf, "react.sls": reaction} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Getenv(proofMaster), "master", "-c", p.dir, "-l", "warning")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the master said %s", said.String())
		}
	})
	key := filepath.Join(p.dir, "pki", "master.pub")
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		public, err := os.ReadFile(key)
		if err == nil {
			err = p.ask(t.Context(), http.MethodGet, "/v1/minions", nil, nil)
		}
		if err == nil {
			// The seals of the proof list no masters, so the minion trusts the key that is stored.
			if err := os.WriteFile(filepath.Join(host, "pki", "minion_master.pub"), public, 0o644); err != nil {
				t.Fatal(err)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the master does not start: %v\n%s", err, said.String())
		}
	}
	// A sealed minion cannot write its key either.
	store, err := keys.Open(keys.Options{Dir: filepath.Join(host, "pki")})
	if err == nil {
		_, err = store.Identity()
	}
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(host, "etc/minion")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	reached := strings.Replace(string(text), "master_type: disable\n", fmt.Sprintf("master: 127.0.0.1\npublish_port: %d\nmaster_port: %d\nrandom_reauth_delay: 0\n", p.ports[0], p.ports[1]), 1)
	if err := os.WriteFile(name, []byte(reached), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *publisher) ask(ctx context.Context, method, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://master"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %.300s", method, path, resp.Status, said)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(said, answer)
}

// publish sends n requests with random arguments for some functions to the sealed minion. It returns how many were
// answered and how many refused.
func (p *publisher) publish(t *testing.T, n int, seed uint64, funs []string, defs map[string]*modules.Def, dir string) (answered, refused int64) {
	t.Helper()
	var next, back, no atomic.Int64
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(1000+worker)))
			for i := int(next.Add(1)) - 1; i < n && !t.Failed(); i = int(next.Add(1)) - 1 {
				fun := funs[i%len(funs)]
				_, kwargs := invent(r, defs[fun], dir)
				name := fmt.Sprintf("proof-%d", i)
				order := map[string]any{"id": name, "tgt": []string{"web1"}, "fun": fun, "kwarg": kwargs, "ttl": 120, "parallel": true,
					"deadline": float64(time.Now().Unix() + 150)}
				var out struct {
					Done    bool
					Minions map[string]struct {
						Status string
						Return any
					}
				}
				err := p.ask(t.Context(), http.MethodPost, "/v1/jobs", order, &out)
				for err == nil && !out.Done {
					err = p.ask(t.Context(), http.MethodGet, "/v1/jobs/"+name+"?wait=20", nil, &out)
				}
				if err != nil {
					t.Errorf("%s: %v", fun, err)
					return
				}
				switch got := out.Minions["web1"]; {
				case got.Status == "undeliverable":
					t.Errorf("%s did not reach the minion", fun)
				case got.Status == "refused", strings.Contains(fmt.Sprint(got.Return), "the policy of this minion does not allow"):
					no.Add(1)
					back.Add(1)
				default:
					back.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return back.Load(), no.Load()
}

// proofFunctions returns the functions that the proof calls: those of some modules, or of all.
func proofFunctions(only []string) (funs []string, defs map[string]*modules.Def) {
	defs = map[string]*modules.Def{}
	for _, mod := range modules.Default().All() {
		if len(only) > 0 && !slices.Contains(only, mod.Name) {
			continue
		}
		for i := range mod.Funcs {
			fun := mod.Called() + "." + mod.Funcs[i].Name
			if defs[fun] == nil {
				funs = append(funs, fun)
			}
			defs[fun] = &mod.Funcs[i]
		}
	}
	slices.Sort(funs)
	return funs, defs
}
